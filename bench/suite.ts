// deno-lint-ignore-file no-console
/**
 * The benchmark suite: compares Sluice with a minimal proxy, a plain reverse proxy and other gateways, on one core.
 * Linux only.
 *
 *     deno task bench            all of it, in under half an hour
 *     deno task bench --quick    the main figures, in about four minutes
 *
 * `--only=A,B*` measures only these scenarios, `--targets=A,B` only these targets besides `direct` and `X`,
 * `--rounds=N` and `--ms=N` say how long, `--out=FILE` where the results go, `--executable=FILE` measures that as well.
 * `--beside=FOLDER` measures another checkout in the same rounds, such as a git worktree of an earlier commit.
 * `--targets=floor-nothing,floor-headers,floor-ledger,floor-both` are measured where they are named; see `suite/floor.ts`.
 * `--cold` leaves out the minute in which the targets warm up.
 * If the environment has COMPILE_DENO, the executable is made with it.
 */
import { basename } from "node:path";
import { parseArgs } from "node:util";
import { judge, type Results } from "./suite/aims.ts";
import { firstRequest, timeStarts, weighStreams } from "./suite/memory.ts";
import { type Peer, startPeer } from "./suite/peer.ts";
import { loadAverage } from "./suite/proc.ts";
import { measure, type Pace, type WarmUp, warmUp } from "./suite/rounds.ts";
import { type Running, startTarget } from "./suite/running.ts";
import { type Scenario, SCENARIOS } from "./suite/scenarios.ts";
import { sluice } from "./suite/sluice.ts";
import { allTables, writeResults } from "./suite/tables.ts";
import { gomodel, litellm, portkey, type RivalOptions } from "./suite/rivals.ts";
import { denoProgram, direct, firstLine, nginx, type Target } from "./suite/targets.ts";

const QUICK: Pace = { rounds: 3, roundMs: 400, calmMs: 1_000 };
const FULL: Pace = { rounds: 5, roundMs: 700, calmMs: 2_000 };

/** Warm-up scenarios, and the number of requests of each. */
const WARM_UP: Readonly<Record<string, WarmUp>> = {
  "json 1k": { requests: 100_000, ms: 30_000 },
  "json 1k cross": { requests: 20_000, ms: 6_000 },
  "agent 60k": { requests: 20_000, ms: 9_000 },
  "agent 60k cross": { requests: 10_000, ms: 9_000 },
  "burst": { requests: 1_000, ms: 4_000 },
  "burst cross": { requests: 1_000, ms: 4_000 },
};

/** Configuration of the gateway's own modules. */
const CONFIG = new URL("../deno.json", import.meta.url).pathname;

/** Number of open streams whose memory is measured. */
const STREAMS = { quick: [1_000], full: [1_000, 5_000] };
/** Targets of a quick run. */
const QUICK_TARGETS = ["X", "floor-both", "gomodel", "litellm", "portkey", "sluice"];

const { values: flags } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    cold: { type: "boolean", default: false },
    only: { type: "string" },
    targets: { type: "string" },
    rounds: { type: "string" },
    ms: { type: "string" },
    streams: { type: "string" },
    executable: { type: "string" },
    beside: { type: "string", multiple: true, default: [] },
    out: { type: "string", default: new URL("./results/last.json", import.meta.url).pathname },
  },
});

const usual = flags.quick ? QUICK : FULL;
const pace: Pace = {
  rounds: Number(flags.rounds ?? usual.rounds),
  roundMs: Number(flags.ms ?? usual.roundMs),
  calmMs: Number(flags.ms ?? usual.calmMs),
};
const streamCounts = flags.streams === undefined
  ? STREAMS[flags.quick ? "quick" : "full"]
  : flags.streams.split(",").map(Number).filter((count) => count > 0);
const selected = flags.targets?.split(",") ?? (flags.quick ? QUICK_TARGETS : undefined);
const isWanted = (name: string) =>
  name === "direct" || name === "X" || flags.beside.some((checkout) => name === besideName(checkout)) ||
  (selected?.includes(name) ?? !name.startsWith("floor-"));
const scenarios = SCENARIOS.filter(({ name, long }) =>
  flags.only === undefined ? !flags.quick || long !== true : flags.only.split(",").some((one) => isLike(name, one))
);

/** Name of another checkout in the results. */
function besideName(checkout: string): string {
  return `sluice-${basename(checkout)}`;
}

function isLike(name: string, selected: string): boolean {
  return selected.endsWith("*") ? name.startsWith(selected.slice(0, -1)) : name === selected;
}

const folder = await Deno.makeTempDir({ prefix: "sluice-bench-" });
const cores = await pinnedCores();
const upstreamPeer = startPeer("./upstream.ts", cores.others);
const upstream = { pid: upstreamPeer.pid, port: Number(await upstreamPeer.ask("")) };

/** The target has its own core; clients and upstream share another one. */
async function pinnedCores(): Promise<{ target: { core?: number }; others: { core?: number } }> {
  const found = await firstLine("taskset", ["-V"]).catch(() => "");
  if (found !== "" && navigator.hardwareConcurrency > 1) return { target: { core: 0 }, others: { core: 1 } };
  console.error("Nothing is pinned to a core: taskset and two cores are needed for that");
  return { target: {}, others: {} };
}

async function executable(): Promise<string | undefined> {
  if (flags.executable !== undefined || Deno.env.get("COMPILE_DENO") === undefined) return flags.executable;
  await Deno.mkdir(`${folder}/executable`);
  // The module finds out at its import whether compiling is possible.
  const { compile } = await import("../tests/support/compiling.ts");
  return await compile(`${folder}/executable`);
}

async function makeTargets(): Promise<Target[]> {
  const upstreamPort = upstream.port;
  const of = (name: string, log: "all" | "none", file?: string) =>
    sluice({ name, folder: `${folder}/${name}`, upstreamPort, log, ...(file !== undefined && { executable: file }) });
  const rival = (name: string): RivalOptions => ({
    installed: `${cacheFolder()}/sluice-bench/${name}`,
    folder: `${folder}/${name}`,
    upstreamPort,
  });
  const makers: readonly (readonly [string, () => Target | undefined | Promise<Target | undefined>])[] = [
    ["direct", () => direct()],
    ["nginx", () => nginx(`${folder}/nginx`, upstreamPort)],
    ["passthrough", () => denoProgram({ name: "passthrough", file: "./passthrough.ts", cross: false, upstreamPort })],
    ["X", () => denoProgram({ name: "X", file: "./yardstick.ts", cross: true, upstreamPort })],
    ...["nothing", "headers", "ledger", "both"].map((has) => [`floor-${has}`, () => floor(has, upstreamPort)] as const),
    ["portkey", () => portkey(rival("portkey"))],
    ["gomodel", () => gomodel(rival("gomodel"))],
    ["litellm", () => litellm(rival("litellm"))],
    ["sluice", () => of("sluice", "all")],
    ...flags.beside.map((checkout) => {
      const name = besideName(checkout);
      const make = () => sluice({ name, folder: `${folder}/${name}`, upstreamPort, log: "all", checkout });
      return [name, make] as const;
    }),
    ["sluice-quiet", () => of("sluice-quiet", "none")],
    ["sluice-compiled", async () => {
      const file = await executable();
      return file === undefined ? undefined : of("sluice-compiled", "all", file);
    }],
  ];
  const targets: Target[] = [];
  for (const [name, make] of makers) {
    if (!isWanted(name)) continue;
    try {
      const target = await make();
      if (target !== undefined) targets.push(target);
    } catch (error) {
      console.error(`${name} is left out: ${error instanceof Error ? error.message : error}`);
    }
  }
  return targets;
}

/** A lower bound of the cost; see `suite/floor.ts`. */
async function floor(has: string, upstreamPort: number): Promise<Target> {
  const own = `${folder}/floor-${has}`;
  await Deno.mkdir(own);
  const program = denoProgram({
    name: `floor-${has}`,
    file: "./floor.ts",
    cross: false,
    upstreamPort,
    args: [has, own],
    flags: ["--allow-read", "--allow-write", "--allow-env", "--unstable-net", "--config", CONFIG],
  });
  // It relays only whole answers.
  const entrance: Target["entrance"] = (scenario) =>
    scenario.play.startsWith("json") ? program.entrance(scenario) : undefined;
  return { ...program, entrance };
}

function cacheFolder(): string {
  return Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME") ?? folder}/.cache`;
}

function start(target: Target): Promise<Running> {
  const errors = `${folder}/errors-${target.name.replaceAll(/\W+/g, "-")}.log`;
  return startTarget(target, { ...cores.target, upstream, ...firstRequest(target), errors });
}

async function startAll(targets: readonly Target[]): Promise<Running[]> {
  const all: Running[] = [];
  for (const target of targets) {
    try {
      all.push(await start(target));
    } catch (error) {
      console.error(`${target.name} is left out: ${error instanceof Error ? error.message : error}`);
    }
  }
  return all;
}

async function measureAll(targets: readonly Running[], load: Peer): Promise<Results["scenarios"]> {
  const measured: Results["scenarios"] = {};
  for (const scenario of SCENARIOS) {
    const most = flags.cold ? undefined : WARM_UP[scenario.name];
    if (most === undefined) continue;
    const until = flags.quick ? { requests: most.requests / 3, ms: most.ms / 3 } : most;
    for (const running of targets.filter(({ target }) => target.command !== undefined)) {
      await warmUp(scenario, { running, load, until });
    }
  }
  console.error(`${new Date().toISOString().slice(11, 19)} warm`);
  for (const scenario of scenarios) {
    measured[scenario.name] = await measure(scenario, { targets, load, pace: paceOf(scenario) });
    for (const [name, figures] of Object.entries(measured[scenario.name] ?? {})) {
      if ("failed" in figures) console.error(`${scenario.name}, ${name}: ${figures.failed}`);
    }
    console.error(`${new Date().toISOString().slice(11, 19)} ${scenario.name}`);
  }
  return measured;
}

/** A stream takes two seconds, so each round has one. */
function paceOf({ once }: Scenario): Pace {
  return once === true ? { ...pace, rounds: Math.min(pace.rounds, 3) } : pace;
}

async function weighAll(targets: readonly Target[]): Promise<Results["streams"]> {
  const streams: Results["streams"] = {};
  for (const count of streamCounts) {
    const by: Record<string, number> = {};
    for (const target of targets.filter(({ command }) => command !== undefined)) {
      // The memory of each target is measured in a new process, with new clients.
      const load = startPeer("./load.ts", cores.others);
      const running = await start(target);
      try {
        by[target.name] = (await weighStreams(running, { load, streams: count })).perStreamBytes;
      } catch (error) {
        console.error(`${count} streams, ${target.name}: ${error instanceof Error ? error.message : error}`);
      }
      await running.stop();
      await load.end();
    }
    streams[String(count)] = by;
    console.error(`${new Date().toISOString().slice(11, 19)} ${count} streams`);
  }
  return streams;
}

const before = await loadAverage();
const targets = await makeTargets();
const running = await startAll(targets);
const load = startPeer("./load.ts", cores.others);
const results: Results = { scenarios: await measureAll(running, load), streams: {}, starts: {} };
await load.end();
for (const one of running) await one.stop();

const able = running.map(({ target }) => target);
results.starts = await timeStarts(able.filter(({ command }) => command !== undefined), { rounds: pace.rounds, start });
results.streams = await weighAll(able);
await upstreamPeer.end();

const names = able.map(({ name }) => name);
const judged = judge(results, "sluice");
const report = {
  at: new Date().toISOString(),
  machine: {
    cores: navigator.hardwareConcurrency,
    processor: /model name\s*: (.*)/.exec(await Deno.readTextFile("/proc/cpuinfo"))?.[1] ?? "",
    kernel: Deno.osRelease(),
  },
  /** Load of the whole machine before and after the run. The suite itself causes up to 2. */
  loadAverage: [before, await loadAverage()],
  pace,
  targets: able.map(({ name, about, fileBytes }) => ({ name, about, ...(fileBytes !== undefined && { fileBytes }) })),
  ...results,
  aims: judged,
};
await writeResults(flags.out, report);
for (const { name, about, fileBytes } of able) {
  console.log(`- ${name}: ${about}${fileBytes === undefined ? "" : `, ${(fileBytes / 1e6).toFixed(1)} MB`}`);
}
console.log(`- load average ${report.loadAverage.map((value) => value.toFixed(1)).join(" to ")}\n`);
console.log(allTables(results, { targets: names, judged }));
await Deno.remove(folder, { recursive: true });
Deno.exit(0);
