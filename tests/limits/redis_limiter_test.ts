import { assertEquals } from "@std/assert";
import { Redis } from "ioredis";
import type { Limiter } from "../../lib/limits/limiter.ts";
import type { NodeSessionOptions } from "../../lib/limits/node_session.ts";
import { openSharedLimiter } from "../../lib/limits/redis_limiter.ts";
import { Secret } from "../../lib/secret.ts";
import { HAS_REDIS, redisTest, someRedis } from "../support/databases.ts";
import { seeded } from "../support/random.ts";
import { rounds } from "../support/skip.ts";
import { leftOf, limitOf, takeOne } from "./redis_nodes.ts";
import { testLimiter } from "./behaviours.ts";
import { type CreateLimiter, simulate } from "./simulate.ts";

const SEEDS = rounds(200);

/** A life without end: the clock of a simulation leaps. */
const ENDLESS_MS = 1e9;

/** Opens limiters on the clock of the test, with a key prefix of their own, which refuse requests without Redis. */
async function openNodes(monotonic: () => number, change: Partial<NodeSessionOptions> & { nodes?: number } = {}) {
  const { nodes = 1, ...parts } = change;
  const url = new Secret(await someRedis());
  const prefix = `{test ${crypto.randomUUID()}}:`;
  const limiters = await Promise.all(Array.from({ length: nodes }, () =>
    openSharedLimiter(url, {
      monotonic,
      clock: monotonic,
      outage: "closed",
      timeoutMs: 5_000,
      leaseMs: ENDLESS_MS,
      log: () => {},
      random: Math.random,
      node: crypto.randomUUID(),
      prefix,
      ...parts,
    })));
  return { limiters, prefix };
}

/**
 * Several nodes as one limiter: each call goes to any of them, and ends where it was reserved. Sequentially, because
 * the simulation must know the order.
 */
function anyOf(limiters: readonly Limiter[], before: () => Promise<void> = () => Promise.resolve()): Limiter {
  const { below } = seeded(5);
  const homes = new Map<string, Limiter>();
  const any = () => limiters[below(limiters.length)] as Limiter;
  let last: Promise<unknown> = Promise.resolve();

  function then<Result>(act: () => Result | Promise<Result>): Promise<Result> {
    const result = last.then(before).then(act);
    last = result.catch(() => {});
    return result;
  }

  return {
    take: (request) =>
      then(() => {
        const home = homes.get(request.id) ?? any();
        homes.set(request.id, home);
        return home.take(request);
      }),
    end: (id, tokens) => then(async () => await homes.get(id)?.end(id, tokens) ?? []),
    undo: (id) => then(async () => await homes.get(id)?.undo(id)),
    statuses: (limitRequests) => then(() => any().statuses(limitRequests)),
    healthy: true,
    async close() {
      await Promise.all(limiters.map((limiter) => limiter.close()));
    },
  };
}

async function open(...of: Parameters<typeof openNodes>) {
  const limiter = anyOf((await openNodes(...of)).limiters);
  return { limiter, close: () => limiter.close() };
}

async function openOne({ monotonic }: { monotonic: () => number }) {
  const [limiter] = (await openNodes(monotonic)).limiters as [Limiter];
  return { limiter, close: () => limiter.close() };
}

if (HAS_REDIS) testLimiter("the limiter in Redis", openOne, { seeds: SEEDS });

/** Ways to play the simulation, in each of which no number may be another. */
const WAYS: Record<string, { seeds: number; create: CreateLimiter }> = {
  "over three nodes": { seeds: rounds(100), create: ({ monotonic }) => open(monotonic, { nodes: 3 }) },
  "while Redis forgets its scripts": {
    seeds: rounds(100),
    async create({ monotonic }) {
      const { limiters } = await openNodes(monotonic);
      const redis = new Redis(await someRedis());
      const { below } = seeded(7);
      async function forgetScripts(): Promise<void> {
        if (below(8) === 0) await redis.script("FLUSH");
      }
      const limiter = anyOf(limiters, forgetScripts);
      return {
        limiter,
        async close() {
          await limiter.close();
          const ended = new Promise((resolve) => redis.once("end", resolve));
          redis.disconnect();
          await ended;
        },
      };
    },
  },
};

for (const [way, { seeds, create }] of Object.entries(WAYS)) {
  redisTest(`the Redis limiter agrees with a model that logs all events ${way}`, async () => {
    for (let seed = 1; seed <= seeds; seed++) {
      try {
        await simulate(seed, create);
      } catch (cause) {
        throw new Error(`seed ${seed}`, { cause });
      }
    }
  });
}

redisTest("numbers in Redis stay integers up to the largest", async () => {
  const most = Number.MAX_SAFE_INTEGER;
  const { limiter, close } = await openOne({ monotonic: () => 1.8e12 });
  const tokens = limitOf("key:a", "tokens", most, most - 5);
  await limiter.take({ id: "one", limitRequests: [tokens], forMs: 1000 });
  assertEquals(await leftOf(limiter, tokens), 5);
  assertEquals((await limiter.end("one", most - 3))[0]?.remaining, 3);
  const { admitted } = await limiter.take({ id: "two", limitRequests: [{ ...tokens, cost: 3 }], forMs: 1000 });
  assertEquals([admitted, await leftOf(limiter, tokens)], [true, 0]);
  await limiter.undo("two");
  assertEquals(await leftOf(limiter, tokens), 3);
  await close();
});

redisTest("a Redis server whose clock is set back by an hour does not count for an hour longer", async () => {
  let now = 1.8e12;
  const { limiter, close } = await openOne({ monotonic: () => now });
  const limitRequests = [limitOf("key:a", "requests", 5), limitOf("key:a", "tokens", 500, 100)];
  for (let count = 0; count < 5; count++) await takeOne(limiter, limitRequests);
  // A short extra wait is allowed: nothing may count for less time than it should.
  now -= 700;
  assertEquals((await takeOne(limiter, limitRequests)).retryAfterMs, 61_200);
  now -= 3_600_000;
  assertEquals((await takeOne(limiter, limitRequests)).retryAfterMs, 60_500 - (now % 500));
  now += 61_000;
  assertEquals((await takeOne(limiter, limitRequests)).admitted, true);
  await close();
});
