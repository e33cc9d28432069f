// deno-lint-ignore-file no-console
/**
 * Measures how the costs of Sluice grow with its load and its data: `deno task bench:growth`; `--quick` takes a few
 * minutes; `--only=A,B` selects from requests, history, models, keys, rows, searches, streams, reports. The last one fills
 * a file with ten million rows and is run only where it is named. `--counts=1000,10000000,1000` sets the numbers of models,
 * keys and rows: a repeated number shows the noise. Linux only.
 */
import { parseArgs } from "node:util";
import type { Size } from "./suite/bodies.ts";
import { firstRequest, weighStreams } from "./suite/memory.ts";
import { type Peer, startPeer } from "./suite/peer.ts";
import { loadAverage, memoryBytes } from "./suite/proc.ts";
import { measure, type Pace, warmUp } from "./suite/rounds.ts";
import { measurePostgres, measureReports } from "./suite/reports.ts";
import { type Running, startTarget } from "./suite/running.ts";
import { type Scenario, SCENARIOS } from "./suite/scenarios.ts";
import { measureSearches, SEARCH_NAMES } from "./suite/searches.ts";
import { seedEntries, seedKeys } from "./suite/seed.ts";
import { modelOf, sluice, type SluiceOptions } from "./suite/sluice.ts";
import { short, table, writeResults } from "./suite/tables.ts";

const { values: flags } = parseArgs({
  options: {
    // An empty database, for the reports.
    postgres: { type: "string" },
    quick: { type: "boolean", default: false },
    only: { type: "string", default: "requests,history,models,keys,rows,searches,streams" },
    counts: { type: "string" },
    out: { type: "string", default: new URL("./results/growth.json", import.meta.url).pathname },
  },
});
const quick = flags.quick;

const PACE: Pace = quick ? { rounds: 3, roundMs: 500, calmMs: 0 } : { rounds: 5, roundMs: 1_000, calmMs: 0 };
const WARM = quick ? { requests: 10_000, ms: 4_000 } : { requests: 60_000, ms: 15_000 };

const SIZES: readonly Size[] = ["1k", "4k", "16k", "60k", "250k", "1m"];
const TURNS = [1, 10, 100, 1_000, 4_000];
const MODELS = quick ? [10, 1_000] : [10, 100, 1_000, 10_000];
const KEYS = quick ? [1_000, 100_000] : [1_000, 10_000, 100_000, 1_000_000];
const ROWS = quick ? [1_000, 100_000] : [1_000, 100_000, 1_000_000, 3_000_000];
const STREAMS = quick ? [250, 1_000] : [250, 1_000, 2_500, 5_000];

const json1k = found("json 1k");
const cross = found("json 1k cross");

function found(name: string): Scenario {
  const scenario = SCENARIOS.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`Cannot measure "${name}": there is no such scenario`);
  return scenario;
}

const folder = await Deno.makeTempDir({ prefix: "sluice-bench-" });
const pins = navigator.hardwareConcurrency > 1
  ? { target: { core: 0 }, others: { core: 1 } }
  : { target: {}, others: {} };
const upstreamPeer = startPeer("./upstream.ts", pins.others);
const upstream = { pid: upstreamPeer.pid, port: Number(await upstreamPeer.ask("")) };
let number = 0;

/** A gateway of its own; `prepare` fills its store before it starts. */
async function gateway(
  { prepare, ...options }: Partial<SluiceOptions> & { prepare?: (database: string) => void | Promise<void> } = {},
): Promise<Running> {
  const own = `${folder}/${++number}`;
  const target = await sluice({ name: "sluice", folder: own, upstreamPort: upstream.port, log: "none", ...options });
  await prepare?.(`${own}/data/sluice.db`);
  return await startTarget(target, { ...pins.target, upstream, ...firstRequest(target), errors: `${own}/errors.log` });
}

/** Measures the cost per request of several targets in interleaved rounds. */
async function costs(
  scenario: Scenario,
  { targets, load }: { targets: readonly Running[]; load: Peer },
): Promise<string[]> {
  const measured = await measure(scenario, { targets, load, pace: PACE });
  return targets.map(({ target }) => {
    const figures = measured[target.name];
    if (figures === undefined || "failed" in figures) return figures?.failed ?? "–";
    return short(figures.cpuUs);
  });
}

/** One gateway, scenario after scenario. */
async function grow(scenarios: readonly Scenario[], load: Peer): Promise<string[]> {
  const running = await gateway();
  for (const scenario of [json1k, cross]) await warmUp(scenario, { running, load, until: WARM });
  const cells: string[] = [];
  for (const scenario of scenarios) cells.push(...await costs(scenario, { targets: [running], load }));
  await running.stop();
  return cells;
}

/**
 * Measures gateways with different amounts of data one after the other: a gateway that waits for its turn would cool
 * down. `start` makes a gateway with this amount.
 */
async function compare(
  counts: readonly number[],
  { load, start }: { load: Peer; start: (count: number) => Promise<Running> },
): Promise<string[][]> {
  const rows: string[][] = [];
  for (const count of flags.counts?.split(",").map(Number) ?? counts) {
    const running = await start(count);
    await warmUp(json1k, { running, load, until: WARM });
    const [cpu = ""] = await costs(json1k, { targets: [running], load });
    const memory = await memoryBytes(running.pid);
    rows.push([String(count), cpu, short(running.startMs), short(memory / 1e6)]);
    await running.stop();
  }
  return rows;
}

/** The studies: the quantity that grows, and the rows of its table. */
const STUDIES: Readonly<Record<string, { head: readonly string[]; rows: (load: Peer) => Promise<string[][]> }>> = {
  requests: {
    head: ["size of a request", "relayed, CPU µs", "translated, CPU µs"],
    async rows(load) {
      const of = (base: Scenario) => SIZES.map((size) => ({ ...base, size, connections: size === "1m" ? 8 : 32 }));
      const cells = await grow([...of(json1k), ...of(cross)], load);
      return SIZES.map((size, index) => [size, cells[index] ?? "", cells[index + SIZES.length] ?? ""]);
    },
  },
  history: {
    head: ["messages in 250 KB", "relayed, CPU µs", "translated, CPU µs"],
    async rows(load) {
      const of = (base: Scenario) => TURNS.map((turns) => ({ ...base, size: "250k" as const, turns, connections: 8 }));
      const cells = await grow([...of(json1k), ...of(cross)], load);
      return TURNS.map((turns, index) => [String(turns), cells[index] ?? "", cells[index + TURNS.length] ?? ""]);
    },
  },
  models: {
    head: ["models", "CPU µs", "start, ms", "memory, MB"],
    rows: async (load) =>
      await compare(MODELS, {
        load,
        start: (count) =>
          gateway({ models: Array.from({ length: count }, (_, at) => modelOf(`extra/model-${at}`, "chat-json")) }),
      }),
  },
  keys: {
    head: ["keys", "CPU µs", "start, ms", "memory, MB"],
    rows: async (load) =>
      await compare(KEYS, { load, start: (count) => gateway({ prepare: (path) => seedKeys(path, count) }) }),
  },
  rows: {
    head: ["rows of the ledger", "CPU µs", "start, ms", "memory, MB"],
    rows: async (load) =>
      await compare(ROWS, {
        load,
        start: (count) => gateway({ prepare: (path) => seedEntries(path, { count, now: Date.now() }) }),
      }),
  },
  searches: {
    head: [
      "rows of the ledger",
      "enter, CPU µs",
      "sum up, CPU µs",
      "file, MB",
      ...SEARCH_NAMES.map((name) => `${name}, ms`),
    ],
    async rows() {
      const rows: string[][] = [];
      for (const count of flags.counts?.split(",").map(Number) ?? ROWS) {
        const path = `${folder}/searches-${count}-${++number}.db`;
        const { enterUs, sumUs, fileMb, searchMs } = await measureSearches(path, { count, now: Date.now() });
        rows.push([String(count), short(enterUs), short(sumUs), short(fileMb), ...searchMs.map(short)]);
        await Deno.remove(path);
      }
      return rows;
    },
  },
  reports: {
    head: ["rows of the ledger", "search or report", "CPU ms", "ms"],
    async rows() {
      const rows: string[][] = [];
      for (const count of flags.counts?.split(",").map(Number) ?? [10_000_000]) {
        const path = `${folder}/reports-${count}-${++number}.db`;
        const measured = flags.postgres === undefined
          ? await measureReports(path, { count, now: Date.now() })
          : await measurePostgres(flags.postgres, { count, now: Date.now() });
        rows.push(...measured.map(({ name, cpuMs, ms }) => [String(count), name, short(cpuMs), short(ms)]));
        if (flags.postgres === undefined) await Deno.remove(path);
      }
      return rows;
    },
  },
  streams: {
    head: ["open streams, translated", "KB per stream", "memory, MB"],
    async rows() {
      const rows: string[][] = [];
      for (const streams of STREAMS) {
        const load = startPeer("./load.ts", pins.others);
        const running = await gateway();
        const { perStreamBytes, openBytes } = await weighStreams(running, { load, streams });
        rows.push([String(streams), short(perStreamBytes / 1000), short(openBytes / 1e6)]);
        await running.stop();
        await load.end();
      }
      return rows;
    },
  },
};

const results: Record<string, { head: readonly string[]; rows: string[][] }> = {};
const before = await loadAverage();
const load = startPeer("./load.ts", pins.others);
for (const name of flags.only.split(",")) {
  const study = STUDIES[name];
  if (study === undefined) throw new Error(`Cannot study "${name}": it is one of ${Object.keys(STUDIES).join(", ")}`);
  const rows = await study.rows(load);
  results[name] = { head: study.head, rows };
  console.log(`${table(study.head, rows)}\n`);
}
await load.end();
await upstreamPeer.end();
const report = { at: new Date().toISOString(), loadAverage: [before, await loadAverage()], results };
await writeResults(flags.out, report);
await Deno.remove(folder, { recursive: true });
Deno.exit(0);
