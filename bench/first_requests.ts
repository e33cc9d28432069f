// deno-lint-ignore-file no-console
/**
 * Compares the latencies of the first 1,000 requests after a start with those of a warm gateway, in Sluice and X:
 * `deno run -A bench/first_requests.ts [ROUNDS]`. Requests of 1 KB, 100 per second; each round starts the targets again.
 */
import { firstRequest } from "./suite/memory.ts";
import { startPeer } from "./suite/peer.ts";
import { median, quantile, tell } from "./suite/rounds.ts";
import { startTarget } from "./suite/running.ts";
import { sluice } from "./suite/sluice.ts";
import { short, table } from "./suite/tables.ts";
import { denoProgram, type Target } from "./suite/targets.ts";

/** Requests per second, and the length of a measurement: 1,000 requests. */
const PER_SECOND = 100;
const MEASURED_MS = 10_000;
/** Time for which 32 connections warm up a target, in milliseconds. */
const WARM_UP_MS = 15_000;

const rounds = Number(Deno.args[0] ?? "3");
const folder = await Deno.makeTempDir({ prefix: "sluice-bench-" });
const upstreamPeer = startPeer("./upstream.ts");
const upstreamPort = Number(await upstreamPeer.ask(""));
const targets = [
  denoProgram({ name: "X", file: "./yardstick.ts", cross: true, upstreamPort }),
  await sluice({ name: "sluice", folder: `${folder}/sluice`, upstreamPort, log: "all" }),
];

/** Returns p50 and p99 in ms of the first 1,000 requests after a start, and of 1,000 requests of the warm target. */
async function measure(target: Target): Promise<number[]> {
  const upstream = { pid: upstreamPeer.pid, port: upstreamPort };
  const first = firstRequest(target);
  const running = await startTarget(target, { upstream, ...first, errors: `${folder}/errors.log` });
  const load = startPeer("./load.ts");
  const { path, headers, model } = first.entrance;
  const ask = { protocol: "chat", size: "1k", model, stream: false } as const;
  await tell(load, { kind: "open", port: running.port, path, headers, ask, connections: 32, untried: true });
  const measured: number[] = [];
  for (const warms of [false, true]) {
    if (warms) await tell(load, { kind: "closed", ms: WARM_UP_MS });
    const { totalUs } = await tell(load, { kind: "rate", ms: MEASURED_MS, perSecond: PER_SECOND });
    measured.push(...[0.5, 0.99].map((share) => quantile(totalUs, share) / 1000));
  }
  await running.stop();
  await load.end();
  return measured;
}

const measured = new Map<string, number[][]>(targets.map(({ name }) => [name, []]));
for (let round = 0; round < rounds; round++) {
  for (const target of targets) measured.get(target.name)?.push(await measure(target));
}
const rows = [...measured].map(([name, results]) => {
  const [firstP50, firstP99, warmP50, warmP99] = [0, 1, 2, 3].map((at) => median(results.map((one) => one[at] ?? NaN)));
  const values = [firstP50, firstP99, warmP50, warmP99, (firstP99 ?? NaN) / (warmP99 ?? NaN)];
  return [name, ...values.map((value = NaN) => short(value))];
});
console.log(table(["ms", "first p50", "first p99", "warm p50", "warm p99", "first / warm p99"], rows));
await upstreamPeer.end();
await Deno.remove(folder, { recursive: true });
Deno.exit(0);
