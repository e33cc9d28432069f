// deno-lint-ignore-file no-console
/**
 * Measures how long the event loop of Sluice blocks under the worst requests that its limits allow: `deno task
 * bench:stalls`, with `--rows=N` for a ledger of another size than a million, `--only=PATTERN` for some of the
 * requests, and `--store=postgres` for the store, with its own server. Linux only. All other clients wait that long.
 */
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { parseStoreAddress } from "../lib/config/address.ts";
import { DAY_MS } from "../lib/store/days.ts";
import { startPostgres } from "../tests/support/databases.ts";
import { COUNT, MESSAGES, type Trial, trialsOf } from "./stalls_trials.ts";
import { LONG_ANSWERS } from "./stalls_upstream.ts";
import { inTime, startPeer } from "./suite/peer.ts";
import { loadAverage } from "./suite/proc.ts";
import { firstRequest } from "./suite/memory.ts";
import { startTarget } from "./suite/running.ts";
import { seedKeys, seedStore } from "./suite/seed.ts";
import { modelOf, sluice } from "./suite/sluice.ts";
import { short, table, writeResults } from "./suite/tables.ts";

/** Longest time that the loop may be blocked, in milliseconds. */
const BOUND_MS = 50;
/** Longest time for one of the requests, in milliseconds. */
const PATIENCE_MS = 120_000;
/** Time after a request for its deferred work, in milliseconds. */
const AFTERWORK_MS = 500;

const { values: { rows, keys, only, times, out, store } } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    keys: { type: "string", default: "100000" },
    only: { type: "string", default: "" },
    times: { type: "string", default: "3" },
    store: { type: "string", default: "sqlite" },
    out: { type: "string", default: new URL("./results/stalls.json", import.meta.url).pathname },
  },
});

const ADMIN_KEY = "admin-key-of-the-bench-0123456789";
const folder = await Deno.makeTempDir({ prefix: "sluice-bench-" });
const gaps = `${folder}/gaps`;
await Deno.writeTextFile(gaps, "");
const upstreamPeer = startPeer("./upstream.ts");
const upstreamPort = Number(await upstreamPeer.ask(""));
const longPeer = startPeer("../stalls_upstream.ts");
const longPort = Number(await longPeer.ask(""));

const engine = store === "postgres" ? await startPostgres() : undefined;
const target = await sluice({
  name: "sluice",
  folder: `${folder}/sluice`,
  upstreamPort,
  log: "none",
  ...longAnswers(),
  config: { admin: { key: { env: "BENCH_ADMIN_KEY" } }, metrics: { public: true } },
  env: { BENCH_ADMIN_KEY: ADMIN_KEY, BENCH_GAPS: gaps, ...(engine !== undefined && { SLUICE_STORE: engine.url }) },
  preload: [new URL("./suite/loop_gaps.ts", import.meta.url).pathname],
});
const database = `${folder}/sluice/data/sluice.db`;
const configFile = `${folder}/sluice/sluice.jsonc`;
const configText = await Deno.readTextFile(configFile);
const address = engine === undefined ? `sqlite:${database}` : engine.url;
console.error(`Seeding ${keys} keys and ${rows} entries`);
if (engine === undefined) seedKeys(database, Number(keys));
const now = Date.now();
// A day in which each key was used.
await seedStore(parseStoreAddress(address), {
  count: Number(keys),
  now: now - 31 * DAY_MS,
  days: 0.5,
  keys: Number(keys),
});
await seedStore(parseStoreAddress(address), { count: Number(rows), now });
const upstream = { pid: upstreamPeer.pid, port: upstreamPort };
const running = await startTarget(target, { upstream, ...firstRequest(target), errors: `${folder}/errors.log` });

/** Upstreams and models for answers of 30 MB. */
function longAnswers(): { upstreams: Record<string, unknown>; models: unknown[] } {
  const upstreams: Record<string, unknown> = {};
  const models: unknown[] = [];
  const api_key = { env: "BENCH_UPSTREAM_KEY" };
  for (const play of LONG_ANSWERS) {
    const base_url = `http://127.0.0.1:${longPort}/${play}`;
    const chat = { vendor: "openai-compatible", base_url: `${base_url}/v1`, protocols: ["chat"] };
    upstreams[`chat-${play}`] = { ...chat, api_key };
    upstreams[`messages-${play}`] = { vendor: "anthropic", base_url, api_key };
    upstreams[`gemini-${play}`] = { vendor: "gemini", base_url, api_key };
    for (const protocol of ["chat", "messages", "gemini"]) {
      models.push(modelOf(`${protocol}/${play}`, `${protocol}-${play}`));
    }
  }
  return { upstreams, models };
}

/** One request. Returns how it was answered. */
async function ask(
  { path, admin, body, method, gzip }: Trial,
  prepared: string | FormData | Uint8Array<ArrayBuffer> | undefined,
): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${running.port}${path}`, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: {
      authorization: `Bearer ${admin === true ? ADMIN_KEY : target.key}`,
      ...(body !== undefined && !(prepared instanceof FormData) && { "content-type": "application/json" }),
      ...(gzip === true && { "content-encoding": "gzip" }),
      ...([COUNT, MESSAGES].includes(path) && { "anthropic-version": "2023-06-01" }),
    },
    ...(prepared !== undefined && { body: prepared }),
  });
  const text = await response.text();
  return response.ok ? "200" : `${response.status} ${/"message":\s*"([^"]{0,60})/.exec(text)?.[1] ?? ""}`;
}

/** Adds members to the configuration file of the start. */
async function configure(more: object): Promise<void> {
  await Deno.writeTextFile(configFile, JSON.stringify({ ...JSON.parse(configText), ...more }));
}

/** The longest gap within a time, in milliseconds: by the clock, and the CPU time of it. */
async function longestGap(from: number, to: number): Promise<{ gapMs: number; cpuMs: number }> {
  const lines = (await Deno.readTextFile(gaps)).trim().split("\n").map((line) => line.split(" ").map(Number));
  const found = lines.filter(([at = 0]) => at >= from && at <= to)
    .map(([, gapMs = 0, cpuMs = 0]) => ({ gapMs, cpuMs }));
  // CPU time of other processes on the core is not a stall of the gateway.
  return found.toSorted((a, b) => Math.min(b.gapMs, b.cpuMs) - Math.min(a.gapMs, a.cpuMs))[0] ?? { gapMs: 0, cpuMs: 0 };
}

async function lagTold(): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${running.port}/metrics`)).text();
  return Number(/^sluice_event_loop_lag_seconds (\S+)/m.exec(text)?.[1]) * 1000;
}

const isAsked = new RegExp(only);
const results = [];
const trials = trialsOf({ rows, keys }).filter(({ name, admin }) =>
  isAsked.test(name) && (engine === undefined || admin === true)
);
for (const trial of trials) {
  const body = trial.body?.();
  const prepared = trial.gzip === true && typeof body === "string" ? new Uint8Array(gzipSync(body)) : body;
  let answer = "";
  // The first run loads and compiles code; the later ones show the lasting cost.
  const stalls: { gapMs: number; cpuMs: number }[] = [];
  let elapsedMs = 0;
  for (let time = 0; time < Number(times); time++) {
    if (trial.config !== undefined) await configure(trial.config(time));
    const from = Date.now();
    const all = Promise.all(Array.from({ length: trial.concurrency ?? 1 }, () => ask(trial, prepared)));
    answer = await inTime(all, "no answer in time", PATIENCE_MS).then(([first = ""]) => first, String);
    elapsedMs = Date.now() - from;
    await new Promise((resolve) => setTimeout(resolve, AFTERWORK_MS));
    stalls.push(await longestGap(from, Date.now()));
  }
  const stall = ({ gapMs, cpuMs }: { gapMs: number; cpuMs: number }) => Math.min(gapMs, cpuMs);
  const [first = { gapMs: 0, cpuMs: 0 }, ...others] = stalls;
  const later = others.length === 0 ? first : others.toSorted((a, b) => stall(b) - stall(a))[0] ?? first;
  results.push({
    name: trial.name,
    answer,
    tookMs: elapsedMs,
    firstMs: stall(first),
    laterMs: stall(later),
    gapMs: later.gapMs,
    lagMs: await lagTold(),
  });
  console.error(`${trial.name}: ${short(stall(later))} ms`);
}
console.log(`Load average ${short(await loadAverage())}\n`);
console.log(table(
  [
    ...["", "answer in ms", "longest stall, first time, ms", "later, ms"],
    ...["by the clock, ms", "/metrics said, ms", "status", ""],
  ],
  results.map(({ name, answer, tookMs, firstMs, laterMs, gapMs, lagMs }) => [
    name,
    String(tookMs),
    short(firstMs),
    short(laterMs),
    short(gapMs),
    short(lagMs),
    answer.slice(0, 3),
    Math.max(firstMs, laterMs) > BOUND_MS ? "OVER" : "",
  ]),
));
const over = results.filter(({ firstMs, laterMs }) => Math.max(firstMs, laterMs) > BOUND_MS);
console.log(`\n${over.length} of ${results.length} hold the loop for more than ${BOUND_MS} ms`);
await writeResults(out, { at: new Date().toISOString(), bound_ms: BOUND_MS, results });
await running.stop();
await engine?.[Symbol.asyncDispose]();
await upstreamPeer.end();
await longPeer.end();
await Deno.remove(folder, { recursive: true });
Deno.exit(0);
