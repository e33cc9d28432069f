// deno-lint-ignore-file no-console
/**
 * Measures limits in Redis: the server's time per command, the delay for a node, and the throughput of a node. It
 * starts its own server: `deno run -A bench/limits.ts`.
 */
import { Redis } from "ioredis";
import type { LimitRequest, LimitUnit } from "../lib/limits/limiter.ts";
import { startRedis } from "../tests/support/databases.ts";
import { limitOf, type OpenNode, openNode } from "../tests/limits/redis_nodes.ts";

const CALLS = 4_000;
const AT_ONCE = 32;
const FOR_MS = 900_000;
const UNITS: readonly LimitUnit[] = ["requests", "tokens", "concurrency"];

/** The limits of one name, or of a key, its group and a model. */
function limitRequestsFor(names: number, units: readonly LimitUnit[] = UNITS): LimitRequest[] {
  return ["key:bench", "group:bench", "model:bench/one"].slice(0, names).flatMap((name) =>
    units.map((unit) => limitOf(name, unit, 1e12, unit === "tokens" ? 1000 : 1))
  );
}

await using server = await startRedis();
const admin = new Redis(server.url);
let serial = 0;

/** Time that Redis spent on one script since the last call, in microseconds. */
async function scriptMicros(): Promise<number> {
  const stats = await admin.info("commandstats");
  await admin.config("RESETSTAT");
  const [, calls = "1", micros = "0"] = /^cmdstat_evalsha:calls=(\d+),usec=(\d+)/m.exec(stats) ?? [];
  return Number(micros) / Number(calls);
}

/** Runs calls, some concurrently, and returns the median and the 99th percentile of their times, in milliseconds. */
async function run(call: (index: number) => unknown, { calls = CALLS, atOnce = AT_ONCE } = {}) {
  const times: number[] = [];
  let next = 0;
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (next < calls) {
      const at = performance.now();
      await call(next++);
      times.push(performance.now() - at);
    }
  }));
  const perSecond = calls / (performance.now() - startedAt) * 1000;
  times.sort((a, b) => a - b);
  const quantile = (part: number) => times[Math.floor(part * (times.length - 1))] ?? NaN;
  return { perSecond, p50: quantile(0.5), p99: quantile(0.99) };
}

function row(...cells: (string | number)[]): void {
  console.log(
    cells.map((cell, index) => (typeof cell === "number" ? cell.toFixed(1) : cell).padEnd(index === 0 ? 44 : 16)).join(
      "",
    ),
  );
}

/** Reservations and ends, measured separately. */
async function measure(
  name: string,
  { node, limitRequests, open }: { node: OpenNode; limitRequests: LimitRequest[]; open: number },
) {
  const { limiter } = node;
  const take = (id: string, wish = limitRequests) => limiter.take({ id, limitRequests: wish, forMs: FOR_MS });
  const held = Array.from({ length: open }, () => `held ${++serial}`);
  await run((index) => take(held[index] ?? ""), { calls: open });
  const ids = Array.from({ length: CALLS }, () => `bench ${++serial}`);
  await scriptMicros();
  const takeMs = await run((index) => take(ids[index] ?? ""));
  const takeMicros = await scriptMicros();
  await run((index) => limiter.end(ids[index] ?? "", 500));
  const endMicros = await scriptMicros();
  const full = limitRequests.map((limitRequest) => ({ ...limitRequest, limit: 1 }));
  await run((index) => take(`refused ${index}`, full));
  const refusedMicros = await scriptMicros();
  row(name, takeMicros, endMicros, refusedMicros, takeMs.perSecond, takeMs.p50, takeMs.p99);
  await run((index) => limiter.end(held[index] ?? "", 500), { calls: open });
}

row("limits", "take, us", "end, us", "refused, us", "takes/s", "p50, ms", "p99, ms");
{
  await using node = await openNode(server.url);
  await run((index) => node.limiter.take({ id: `warm ${index}`, limitRequests: limitRequestsFor(1), forMs: 1 }));
  await measure("1 (requests of a key)", { node, limitRequests: limitRequestsFor(1, ["requests"]), open: 0 });
  await measure("3 (a key)", { node, limitRequests: limitRequestsFor(1), open: 0 });
  await measure("9 (key, group, model)", { node, limitRequests: limitRequestsFor(3), open: 0 });
  await measure("3, 10 open requests", { node, limitRequests: limitRequestsFor(1), open: 10 });
  await measure("3, 10,000 open requests", { node, limitRequests: limitRequestsFor(1), open: 10_000 });
  const nodes = await Promise.all(Array.from({ length: 50 }, () => openNode(server.url)));
  await measure("3, 51 nodes", { node, limitRequests: limitRequestsFor(1), open: 0 });
  await Promise.all(nodes.map(({ limiter }) => limiter.close()));
  // Every bucket of the window has an amount.
  for (let at = Math.floor(Date.now() / 500) + 1; at <= Math.floor(Date.now() / 500) + 121; at++) {
    await admin.hincrby("{test}:r:key:full", String(at), 1);
  }
  const first = Math.floor(Date.now() / 500) + 10;
  await admin.hset("{test}:r:key:full", "s", 112, "f", first, "l", first + 111);
  await measure("1, its window in 120 buckets", {
    node,
    limitRequests: [limitOf("key:full", "requests", 1e12)],
    open: 0,
  });
  const ids = Array.from({ length: CALLS }, () => `alone ${++serial}`);
  const alone = await run(
    (index) => node.limiter.take({ id: ids[index] ?? "", limitRequests: limitRequestsFor(1), forMs: FOR_MS }),
    {
      atOnce: 1,
    },
  );
  console.log(`one at a time: p50 ${alone.p50.toFixed(2)} ms, p99 ${alone.p99.toFixed(2)} ms`);
}
{
  const nodes = await Promise.all(Array.from({ length: 3 }, () => openNode(server.url)));
  const [first] = nodes as [OpenNode];
  const slot = [limitOf("key:gone", "concurrency", 1e6)];
  await run((index) => first.limiter.take({ id: `gone ${index}`, limitRequests: slot, forMs: FOR_MS }), {
    calls: 10_000,
  });
  const at = performance.now();
  await first.limiter.close();
  console.log(`10,000 slots of a node given back in ${(performance.now() - at).toFixed(0)} ms`);
  await Promise.all(nodes.map(({ limiter }) => limiter.close()));
}
admin.disconnect();
