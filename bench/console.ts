// deno-lint-ignore-file no-console
/**
 * Measures how long the console's pages take with many requests in the ledger: `deno task bench:console`;
 * `--rows=100000` sets their number, `--days=1` the days that they are spread over, `--database=FILE` keeps them for the
 * next run. Pages are loaded in turn. The table has the medians of the wall time and of the gateway's CPU time.
 */
import { parseArgs } from "node:util";
import { start } from "../tests/support/program.ts";
import { cpuNs, loadAverage } from "./suite/proc.ts";
import { median } from "./suite/rounds.ts";
import { seedEntries, seedKeys } from "./suite/seed.ts";
import { short, table } from "./suite/tables.ts";

const { values: flags } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    days: { type: "string", default: "30" },
    rounds: { type: "string", default: "5" },
    database: { type: "string" },
  },
});

/** Longest time that a page may take, in milliseconds. */
const AIM_MS = 300;
const ADMIN_KEY = "admin-key-of-the-bench";
const MONTH = new Date().toISOString().slice(0, 7);
const KEY = "key_seeded_7";

/** Pages by name. */
const PAGES: Readonly<Record<string, string>> = {
  "Overview, an hour": "?period=1h",
  "Overview, a day by key": "?period=24h&by=key",
  "Overview, 7 days": "",
  "Overview, 30 days by upstream": "?period=30d&by=upstream",
  "Overview, a year": "?period=1y",
  "Requests": "/requests",
  "Requests of a key": `/requests?key=${KEY}`,
  "Requests that failed": "/requests?failed=true",
  "Requests of a user": "/requests?user=user-7777",
  "Requests of 7 days by cost": "/requests?since=7d&sort=cost",
  "Requests of 7 days by duration": "/requests?since=7d&sort=duration",
  "Requests with a tag that none has": "/requests?tag=none",
  "Keys": "/keys",
  "A key": `/keys/${KEY}`,
  "Budgets": "/budgets",
  "Models": "/models",
  "Usage by model": `/usage?month=${MONTH}`,
  "Usage by day and key": `/usage?month=${MONTH}&by=day&then=key`,
  "Usage by user": `/usage?month=${MONTH}&by=user`,
  "Usage by upstream": `/usage?month=${MONTH}&by=upstream`,
  "Node": "/node",
  "Configuration": "/configuration",
  "Changes": "/changes",
};

/** Milliseconds of one load, to the last byte, and of the gateway's CPU time for it. */
async function load(page: string): Promise<{ ms: number; cpuMs: number }> {
  const before = await cpuNs(gateway.pid);
  const startedAt = performance.now();
  const response = await fetch(url + page, { headers: { cookie } });
  await response.bytes();
  if (response.status !== 200) throw new Error(`Cannot measure ${page}: ${response.status}`);
  const ms = performance.now() - startedAt;
  return { ms, cpuMs: (await cpuNs(gateway.pid) - before) / 1e6 };
}

async function signIn(origin: string): Promise<string> {
  const response = await fetch(`${origin}/admin/console/sign-in`, {
    method: "POST",
    body: new URLSearchParams({ key: ADMIN_KEY }),
    headers: { origin },
    redirect: "manual",
  });
  await response.body?.cancel();
  return response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
}

const folder = await Deno.makeTempDir({ prefix: "sluice-bench-" });
await Deno.mkdir(`${folder}/data`);
const config = { admin: { key: { env: "ADMIN_KEY" } }, log: { requests: "none" } };
await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config));
const path = flags.database ?? `${folder}/data/sluice.db`;
const before = await loadAverage();
if (!await Deno.stat(path).then(() => true, () => false)) {
  await seedEntries(path, { count: Number(flags.rows), days: Number(flags.days), now: Date.now() });
  seedKeys(path, 100);
}
const gateway = await start(["serve", "--store", `sqlite:${path}`], { folder, env: { ADMIN_KEY } });
const url = `${gateway.origin}/admin/console`;
const cookie = await signIn(gateway.origin);
const newest = /\/requests\/(req_[^"]+)"/.exec(await (await fetch(`${url}/requests`, { headers: { cookie } })).text());
const pages = { ...PAGES, "A request": `/requests/${newest?.[1]}` };
const rows: string[][] = [];
for (const [name, page] of Object.entries(pages)) {
  const first = await load(page);
  const loads: { ms: number; cpuMs: number }[] = [];
  for (let round = 0; round < Number(flags.rounds); round++) loads.push(await load(page));
  const cpuMs = median(loads.map(({ cpuMs }) => cpuMs));
  rows.push([
    name,
    short(cpuMs),
    short(median(loads.map(({ ms }) => ms))),
    short(first.ms),
    cpuMs <= AIM_MS ? "held" : "MISSED",
  ]);
}
console.log(`${flags.rows} requests, load average ${before} before and ${await loadAverage()} after\n`);
console.log(table(["page", "CPU ms", "ms", "first time, ms", `CPU at most ${AIM_MS} ms`], rows));
gateway.kill("SIGTERM");
await gateway.ended;
await Deno.remove(folder, { recursive: true });
