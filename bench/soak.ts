// deno-lint-ignore-file no-console
/**
 * Checks that the resources of Sluice stay flat under a long mixed load: `deno task bench:soak`, `--minutes=15`,
 * `--rate=160` requests per second, `--inspect` to attach a debugger. Linux only. `suite/mix.ts` defines the load.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { AuditReport } from "../lib/billing/reports/schemas.ts";
import { firstRequest } from "./suite/memory.ts";
import type { LoadOptions, LoadReport, UnexpectedFailure } from "./suite/mixed_load.ts";
import { type Peer, startPeer } from "./suite/peer.ts";
import { loadAverage } from "./suite/proc.ts";
import { freePort, type Running, startTarget } from "./suite/running.ts";
import { modelOf, sluice } from "./suite/sluice.ts";
import { lowsOf, type Point, type Trend, trendOf } from "./suite/steady.ts";
import { short, table, writeResults } from "./suite/tables.ts";
import { countOf, type GatewayProcess, type ProcessSample, sampleProcess } from "./suite/process_sample.ts";

const { values: flags } = parseArgs({
  options: {
    minutes: { type: "string", default: "15" },
    rate: { type: "string", default: "160" },
    seed: { type: "string", default: "1" },
    inspect: { type: "boolean", default: false },
    out: { type: "string", default: new URL("./results/soak.json", import.meta.url).pathname },
  },
});
const minutes = Number(flags.minutes);
if (!(minutes > 0)) throw new Error(`Cannot soak for "${flags.minutes}" minutes: expected a number above 0`);

/** Time between two samples, in milliseconds, and share of the time that counts as warm-up, at most 3 minutes. */
const LOOK_MS = Math.min(10_000, minutes * 60_000 / 30);
const WARM_SECONDS = Math.min(180, minutes * 60 / 5);
/** Allowed increase from the middle third to the last one. */
const LEEWAY = { share: 0.03, value: 5e6 };
/** The same for descriptors: their number varies with that of open connections. */
const FEW = { share: 0.1, value: 20 };
/** Calm samples have at most this many times the median of running requests. */
const CALM = 1.5;
/**
 * Samples per low point: within a minute every part of the heap was collected once, so the lowest sample has the least
 * garbage.
 */
const LOOKS_OF_A_LOW = 6;
/** Time after the load until leftovers are counted, in milliseconds. */
const CALM_MS = 5_000;
/** Keys with a budget besides the one without. */
const BUDGETED = 8;
const ADMIN_KEY = "admin-key-of-the-bench-0123456789";
const MB = 1e6;

const folder = await Deno.makeTempDir({ prefix: "sluice-soak-" });
const upstreamPeer = startPeer("./upstream.ts");
const upstream = { pid: upstreamPeer.pid, port: Number(await upstreamPeer.ask("")) };
const faultPort = freePort();
const misbehaving = new Deno.Command(Deno.execPath(), {
  args: ["run", "--quiet", "--no-check", "-A", new URL("../main.ts", import.meta.url).pathname].concat(
    ["fault", "--port", String(faultPort)],
  ),
  stdin: "null",
  stdout: "null",
  stderr: "null",
}).spawn();

const target = await sluice({
  name: "sluice",
  folder: `${folder}/sluice`,
  upstreamPort: upstream.port,
  log: "all",
  models: [modelOf("soak/embedded", "embedded"), modelOf("soak/wire", "wire")].map((model, at) => ({
    ...model,
    ...(at === 0 && { targets: [{ upstream: "embedded", model: "fault" }] }),
  })),
  upstreams: {
    wire: {
      vendor: "openai-compatible",
      base_url: `http://127.0.0.1:${faultPort}/v1`,
      protocols: ["chat", "responses"],
    },
  },
  config: { admin: { key: { env: "BENCH_ADMIN_KEY" } } },
  env: { BENCH_ADMIN_KEY: ADMIN_KEY },
});
const running = await startTarget(withMore(target), {
  upstream,
  ...firstRequest(target),
  errors: `${folder}/errors.log`,
});
const gatewayProcess: GatewayProcess = {
  pid: running.pid,
  port: running.port,
  adminKey: ADMIN_KEY,
  database: `${folder}/sluice/data/sluice.db`,
};

/** The same flags and, on request, an inspector, whose address goes to standard error. */
function withMore(plain: typeof target): typeof target {
  const port = flags.inspect ? freePort() : undefined;
  if (port !== undefined) console.error(`The inspector is at http://127.0.0.1:${port}/json/list`);
  return {
    ...plain,
    command: async (own) => {
      const command = await plain.command?.(own);
      if (command === undefined) throw new Error("Cannot soak Sluice: it has no command");
      const more = port === undefined ? [] : [`--inspect=127.0.0.1:${port}`];
      return { ...command, args: ["run", ...more, ...command.args.slice(1)] };
    },
  };
}

async function budgetedKey(number: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${running.port}/admin/v1/keys`, {
    method: "POST",
    headers: { "authorization": `Bearer ${ADMIN_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({
      name: `budgeted-${number}`,
      rules: {
        budget: { usd: "100000", period: "day" },
        limits: { requests_per_minute: 1_000_000, concurrency: 20_000 },
      },
    }),
  });
  if (!response.ok) throw new Error(`Cannot make a key: ${await response.text()}`);
  return (await response.json()).key;
}

async function orderOf(): Promise<LoadOptions> {
  const clients = [target.key];
  for (let number = 0; number < BUDGETED; number++) clients.push(await budgetedKey(number));
  return {
    port: running.port,
    perSecond: Number(flags.rate),
    keys: { clients, admin: ADMIN_KEY },
    seed: Number(flags.seed),
  };
}

/** Answers by kind and status. */
const answers: LoadReport["answers"] = {};
const failures: UnexpectedFailure[] = [];
let leftOut = 0;
let inProgress = 0;

async function tell(load: Peer, line: string): Promise<void> {
  const result: LoadReport = JSON.parse(await load.ask(line));
  for (const [kind, outcomes] of Object.entries(result.answers)) {
    const of = answers[kind] ??= {};
    for (const [outcome, count] of Object.entries(outcomes)) of[outcome] = (of[outcome] ?? 0) + count;
  }
  for (const failure of result.failures) console.error(JSON.stringify(failure));
  failures.push(...result.failures);
  leftOut += result.leftOut;
  inProgress = result.inProgress;
}

/** Samples the gateway under load. `after` is the sample after the load. */
async function soak(load: Peer): Promise<{ samples: ProcessSample[]; after: ProcessSample; loadSeconds: number }> {
  await tell(load, JSON.stringify(await orderOf()));
  const begin = performance.now();
  const seconds = () => (performance.now() - begin) / 1000;
  const samples: ProcessSample[] = [];
  for (let number = 1; number * LOOK_MS <= minutes * 60_000; number++) {
    await pause(number * LOOK_MS - seconds() * 1000);
    await tell(load, "how");
    const sample = await sampleProcess(gatewayProcess, seconds());
    samples.push(sample);
    const [rss, pss, heap] = [sample.rss, sample.pss, sample.heap].map((bytes) => short(bytes / MB));
    const { descriptors, queue, holds, running } = sample;
    console.error(
      `${sample.seconds} s: RSS ${rss}, PSS ${pss}, heap ${heap} MB, ${descriptors} descriptors, queue ${queue}, ` +
        `holds ${holds}, running ${running} (${inProgress})`,
    );
  }
  const loadSeconds = seconds();
  await tell(load, "stop");
  await pause(CALM_MS);
  return { samples, after: await sampleProcess(gatewayProcess, seconds()), loadSeconds };
}

/** Audits the whole ledger; `ok` means that there are no differences. */
async function auditOf(): Promise<AuditReport> {
  const response = await fetch(`http://127.0.0.1:${running.port}/admin/v1/audit`, {
    method: "POST",
    headers: { "authorization": `Bearer ${ADMIN_KEY}` },
  });
  if (!response.ok) throw new Error(`Cannot audit: ${await response.text()}`);
  return await response.json();
}

/**
 * The samples with at most the usual number of running requests: if the machine has other work, requests, their
 * connections and their memory accumulate.
 */
function calmOf(samples: readonly ProcessSample[]): ProcessSample[] {
  const usual = samples.map(({ running }) => running).toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? 0;
  return samples.filter(({ running }) => running <= CALM * usual);
}

/** The written report. */
type Report = Awaited<ReturnType<typeof measured>>;

async function measured(gateway: Running) {
  const load = startPeer("./mixed_load.ts");
  const before = await loadAverage();
  const { samples, after, loadSeconds } = await soak(load);
  await load.end();
  const audit = await auditOf();
  await gateway.stop();
  const warm = calmOf(samples.filter(({ seconds }) => seconds > WARM_SECONDS));
  const series = (of: (sample: ProcessSample) => number): Point[] =>
    warm.map((sample) => ({ seconds: sample.seconds, value: of(sample) }));
  const heap = series((sample) => sample.heap);
  const memory = {
    rss: trendOf(series(({ rss }) => rss), LEEWAY),
    pss: trendOf(series(({ pss }) => pss), LEEWAY),
    live: trendOf(lowsOf(heap, LOOKS_OF_A_LOW), LEEWAY),
  };
  const descriptors = trendOf(series((sample) => sample.descriptors), FEW);
  // The one running request is the query itself.
  const nothingLeft = after.holds === 0 && after.queue === 0 && after.running <= 1;
  const requests = Object.values(answers).reduce((sum, of) => sum + sumOf(of), 0);
  return {
    at: new Date().toISOString(),
    minutes,
    warmSeconds: WARM_SECONDS,
    loadAverage: [before, await loadAverage()],
    requests,
    perSecond: requests / loadSeconds,
    leftOut,
    calmSamples: warm.length,
    unanswered: inProgress,
    entries: countOf(gatewayProcess.database, "entries"),
    flat: memory.rss.flat && memory.pss.flat && memory.live.flat && descriptors.flat,
    nothingLeft,
    audit,
    failures,
    memory,
    // Reported but not judged: the share of garbage in a sample is random.
    heap: trendOf(heap, LEEWAY),
    descriptors,
    most: {
      descriptors: Math.max(...samples.map(({ descriptors }) => descriptors)),
      queue: Math.max(...samples.map(({ queue }) => queue)),
      holds: Math.max(...samples.map(({ holds }) => holds)),
      running: Math.max(...samples.map(({ running }) => running)),
    },
    after,
    answers,
    samples,
  };
}

/** Writes the report as tables of Markdown. */
function tables({ memory, heap, descriptors, after, most, ...rest }: Report): string {
  const row = (name: string, { thirds, perHour, rise, flat }: Trend, unit: number) => [
    name,
    ...thirds.map((third) => short(third / unit)),
    short(rise / unit),
    short(perHour / unit),
    flat ? "flat" : "NOT FLAT",
  ];
  const rows = [
    row("RSS, MB", memory.rss, MB),
    row("PSS, MB", memory.pss, MB),
    row("heap, lowest of a minute, MB", memory.live, MB),
    [...row("heap used, MB", heap, MB).slice(0, -1), "not judged"],
    row("descriptors", descriptors, 1),
  ];
  const gauges = ["descriptors", "queue", "holds", "running"] as const;
  const outcomes = Object.entries(rest.answers).map(([kind, of]) => [
    kind,
    String(sumOf(of)),
    Object.entries(of).sort(([, a], [, b]) => b - a).map(([outcome, count]) => `${outcome}: ${count}`).join(", "),
  ]);
  return [
    `${rest.minutes} minutes, ${rest.requests} requests, ${short(rest.perSecond)} a second (${rest.leftOut} left ` +
    `out, ${rest.unanswered} without an end), ${rest.entries} entries, ${rest.calmSamples} calm samples, load average ` +
    rest.loadAverage.map(short).join(" to "),
    table(["", "first third", "middle", "last", "last - first", "per hour", ""], rows),
    table(["", "most", "after the load"], gauges.map((name) => [name, String(most[name]), String(after[name])])),
    table(["kind", "requests", "answers"], outcomes),
    rest.flat ? "Memory and descriptors are flat" : "Memory or descriptors are NOT flat",
    rest.nothingLeft ? "Nothing is still open" : "Something is STILL OPEN",
    `The audit of ${rest.audit.checked.entries} entries finds ${rest.audit.difference_count} differences`,
    ...rest.failures.length === 0 ? [] : [
      table(
        ["at", "request", "status", "after, ms", "answer"],
        rest.failures.map(({ at, kind, status, afterMs, body }) => [
          at,
          kind,
          String(status),
          String(afterMs),
          body.replaceAll("|", "/"),
        ]),
      ),
    ],
  ].join("\n\n");
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

try {
  const report = await measured(running);
  await writeResults(flags.out, report);
  console.log(tables(report));
} finally {
  await running.stop();
  misbehaving.kill("SIGKILL");
  await upstreamPeer.end();
  await Deno.remove(folder, { recursive: true });
}
Deno.exit(0);
