// deno-lint-ignore-file no-console
/**
 * Profiles Sluice under one scenario of the suite: `deno run -A bench/profile.ts [SCENARIO] [SECONDS]`, with
 * `--yardstick` the yardstick instead.
 */
import { parseArgs } from "node:util";
import { firstRequest } from "./suite/memory.ts";
import { startPeer } from "./suite/peer.ts";
import { cpuNs } from "./suite/proc.ts";
import { inspecting, profile, type ProfileShare } from "./suite/profiler.ts";
import { openConnections, tell } from "./suite/rounds.ts";
import { startTarget } from "./suite/running.ts";
import { SCENARIOS } from "./suite/scenarios.ts";
import { sluice } from "./suite/sluice.ts";
import { short, table } from "./suite/tables.ts";
import { denoProgram } from "./suite/targets.ts";

/** Number of shown entries of each list. */
const SHOWN = 40;

/** Time for the compiler of V8 to settle, in milliseconds. */
const WARM_UP_MS = 15_000;

const { values: { yardstick }, positionals: [name = "json 1k", seconds = "4"] } = parseArgs({
  options: { yardstick: { type: "boolean", default: false } },
  allowPositionals: true,
});
const scenario = SCENARIOS.find((one) => one.name === name);
if (scenario === undefined) {
  throw new Error(`Cannot profile "${name}": the scenarios are ${SCENARIOS.map(({ name }) => name).join(", ")}`);
}

const folder = await Deno.makeTempDir({ prefix: "sluice-bench-" });
const upstreamPeer = startPeer("./upstream.ts");
const upstreamPort = Number(await upstreamPeer.ask(""));
const target = yardstick
  ? denoProgram({ name: "X", file: "./yardstick.ts", cross: true, upstreamPort })
  : await sluice({ name: "sluice", folder: `${folder}/sluice`, upstreamPort, log: "none" });
const { flags, port } = inspecting();
const command = target.command;
if (command === undefined) throw new Error("Cannot profile the upstream itself");
const inspected = {
  ...target,
  command: async (port: number) => {
    const { args, ...rest } = await command(port);
    const [run = "", ...others] = args;
    return { ...rest, args: [run, ...flags, ...others] };
  },
};
const upstream = { pid: upstreamPeer.pid, port: upstreamPort };
const running = await startTarget(inspected, { upstream, ...firstRequest(target), errors: `${folder}/errors.log` });
const load = startPeer("./load.ts");
const opened = await openConnections(scenario, { running, load });
if (opened === undefined) throw new Error(`Cannot ask ${target.name} for "${name}"`);
await tell(load, { kind: "closed", ms: WARM_UP_MS });

let requests = 0;
const before = await cpuNs(running.pid);
const found = await profile(port, async () => {
  ({ requests } = await tell(load, { kind: "closed", ms: Number(seconds) * 1000 }));
});
const cpuUs = (await cpuNs(running.pid) - before) / 1000 / requests;

const list = (places: readonly ProfileShare[]) =>
  table(["place", "%"], places.slice(0, SHOWN).map(({ place, share }) => [place.slice(0, 100), short(share * 100)]));
console.log(`${target.name}, ${name}: ${requests} requests, ${short(cpuUs)} µs each, profiler included`);
console.log(`\nIn the functions themselves\n\n${list(found.functions)}`);
console.log(`\nIn the functions of each file\n\n${list(found.files)}`);
console.log(`\nIn each file of ours and the runtime on its behalf\n\n${list(found.owners)}`);
console.log(`\nIn the functions and what they call\n\n${list(found.inclusive)}`);
await running.stop();
await load.end();
await upstreamPeer.end();
await Deno.remove(folder, { recursive: true });
Deno.exit(0);
