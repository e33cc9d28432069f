import { assertEquals, assertGreater, assertLessOrEqual } from "@std/assert";
import { type Engine, HAS_REDIS, redisTest, startRedis } from "../support/databases.ts";
import type { Orders } from "./hammer.ts";
import { type Hammer, startHammer } from "./hammers.ts";
import { leftOf, limitOf, openNode } from "./redis_nodes.ts";
import { until } from "../support/soon.ts";

const PROCESSES = 4;
const WINDOW_MS = 60_000;

/** A lease that no living process misses on a busy machine. */
const LEASE_MS = 6_000;

async function startAll(redis: Engine, orders: Omit<Orders, "url" | "leaseMs">, leaseMs = 1e6): Promise<Hammer[]> {
  return await Promise.all(
    Array.from({ length: PROCESSES }, () => startHammer({ url: redis.url, leaseMs, ...orders })),
  );
}

redisTest("four processes at full load on one key are admitted exactly the limit", async () => {
  await using redis = await startRedis();
  const limit = 2_000;
  // At this speed the window is longer than the test.
  const hammers = await startAll(redis, { unit: "requests", limit, workers: 8, holdMs: 0, speed: 0.1 });
  const admitted = () => hammers.flatMap(({ reports }) => reports).filter(({ taken }) => taken !== undefined).length;
  await until("the limit is reached", () => admitted() >= limit);
  const isRefused = ({ reports }: Hammer) => reports.some(({ refused }) => refused !== undefined);
  await until("each is refused many times", () => hammers.every(isRefused));
  await Promise.all(hammers.map((hammer) => hammer.end()));
  assertEquals(admitted(), limit);
});

redisTest("four processes at full load on one key never exceed the limit within 60 seconds", async () => {
  await using redis = await startRedis();
  const limit = 500;
  // At this speed a window takes a second and a half. A jump of the clock must not end it early.
  const hammers = await startAll(redis, { unit: "requests", limit, workers: 8, holdMs: 0, speed: 40 });
  const admitted = () => hammers.flatMap(({ reports }) => reports).filter(({ taken }) => taken !== undefined).length;
  await until("three windows have passed", () => admitted() > 3 * limit);
  await Promise.all(hammers.map((hammer) => hammer.end()));
  const takings = hammers.flatMap(({ reports }) => reports).flatMap(({ begun, taken }) =>
    begun === undefined || taken === undefined ? [] : [{ begun, taken }]
  ).sort((a, b) => a.begun - b.begun);
  assertGreater(takings.length, 2 * limit);
  for (const [index, { begun }] of takings.entries()) {
    // Reservations that were certainly made within these 60 seconds.
    const within = takings.slice(index, index + 3 * limit).filter(({ taken }) => taken <= begun + WINDOW_MS);
    assertLessOrEqual(within.length, limit);
  }
});

Deno.test({
  name: "slots never exceed the limit although holders are killed, and are freed soon afterwards",
  ignore: !HAS_REDIS,
  fn: async () => {
    const limit = 10;
    await using redis = await startRedis();
    const orders = { unit: "concurrency", limit, workers: 6, holdMs: 60, speed: 1 } as const;
    const hammers = await startAll(redis, orders, LEASE_MS);
    const lines = (from: readonly Hammer[]) => from.reduce((sum, { reports }) => sum + reports.length, 0);
    await until("slots are taken", () => lines(hammers) > 300);
    const deaths = new Map<Hammer, number>();
    for (const hammer of hammers.slice(0, PROCESSES / 2)) {
      deaths.set(hammer, performance.timeOrigin + performance.now());
      hammer.kill("SIGKILL");
      await hammer.status;
      const before = lines(hammers);
      await until("the others go on", () => lines(hammers) > before + 20);
    }
    await using node = await openNode(redis.url);
    const slot = limitOf("key:hammered", "concurrency", limit);
    const living = hammers.filter((hammer) => !deaths.has(hammer));
    for (const hammer of living) {
      const before = hammer.reports.length;
      await until("each of the living has slots", () => hammer.reports.length > before + 100);
    }
    await Promise.all(living.map((hammer) => hammer.end()));
    await until("all slots are free", async () => await leftOf(node.limiter, slot) === limit);

    const events = hammers.flatMap((hammer) => {
      const ends = new Map(hammer.reports.flatMap(({ id, ended }) => ended === undefined ? [] : [[id, ended]]));
      return hammer.reports.flatMap(({ id, taken }) => {
        if (taken === undefined) return [];
        return [{ at: taken, by: 1 }, { at: ends.get(id) ?? deaths.get(hammer) ?? Infinity, by: -1 }];
      });
    }).sort((a, b) => a.at - b.at || a.by - b.by);
    let [held, most] = [0, 0];
    for (const { by } of events) most = Math.max(most, held += by);
    assertLessOrEqual(most, limit);
    // With few events the test would prove little.
    assertGreater(events.length, 500);
  },
});
