import { assert, assertEquals, assertLess } from "@std/assert";
import type { Limiter, LimitRequest } from "../../lib/limits/limiter.ts";
import { createMemoryLimiter } from "../../lib/limits/memory_limiter.ts";
import { testLimiter } from "./behaviours.ts";
import { type CreateLimiter, simulate } from "./simulate.ts";

testLimiter("the memory limiter", ({ monotonic }) => ({ limiter: createMemoryLimiter({ monotonic }) }));

Deno.test("the memory limiter removes idle limits, and requests that never ended", async () => {
  let now = 0;
  const limiter = createMemoryLimiter({ monotonic: () => now });
  const take = (serial: number, forMs: number) => {
    const limitRequests = ["key", "group", "model"].flatMap((owner): LimitRequest[] => [
      { name: `${owner}:${serial}`, unit: "requests", limit: 5, cost: 1, reportOnly: false },
      { name: `${owner}:${serial}`, unit: "concurrency", limit: 5, cost: 1, reportOnly: false },
    ]);
    return limiter.take({ id: `r${serial}`, limitRequests, forMs });
  };
  let largest = 0;
  // At 25 per second, each with 3 names of its own, some 6,000 names and requests count at any time.
  for (let serial = 0; serial < 7_500; serial++) {
    now += 40;
    await take(serial, 1000);
    largest = Math.max(largest, limiter.size);
  }
  assertLess(largest, 18_750);
  now += 200_000;
  for (let count = 0; count < 18_750; count++) await limiter.take({ id: "none", limitRequests: [], forMs: 0 });
  assertEquals(limiter.size, 0);
});

/** Limiters with one bug each, and a part of the title of the behaviour that it breaks. */
const BROKEN: Record<string, { words: string; spoil: (monotonic: () => number) => Limiter }> = {
  "one that looks, and takes a moment later": {
    words: "more than a limit",
    spoil(monotonic) {
      const inner = createMemoryLimiter({ monotonic });
      return {
        ...methodsOf(inner),
        async take(wish) {
          const statuses = await inner.statuses(wish.limitRequests);
          const lacks = statuses.filter(({ limitRequest, remaining }) => limitRequest.cost > remaining).map((
            { limitRequest },
          ) => limitRequest);
          if (lacks.some(({ reportOnly }) => !reportOnly)) return inner.take(wish);
          await inner.take({
            ...wish,
            limitRequests: wish.limitRequests.map((limitRequest) => ({ ...limitRequest, reportOnly: true })),
          });
          const after = await inner.statuses(wish.limitRequests);
          return { admitted: true, statuses: after, exceeded: lacks, retryAfterMs: 0 };
        },
      };
    },
  },
  "one whose minutes begin by the clock": {
    words: "more than a limit",
    spoil: (monotonic) => createMemoryLimiter({ monotonic: () => Math.floor(monotonic() / 60_000) * 61_000 }),
  },
  "one whose clock is fast by 2 %": {
    words: "more than a limit",
    spoil: (monotonic) => createMemoryLimiter({ monotonic: () => monotonic() * 1.02 }),
  },
  "one that forgets to free slots at the end": {
    words: "never free again",
    spoil: (monotonic) => ({ ...methodsOf(createMemoryLimiter({ monotonic })), end: () => Promise.resolve([]) }),
  },
  "one that forgets to take back": {
    words: "never free again",
    spoil: (monotonic) => ({ ...methodsOf(createMemoryLimiter({ monotonic })), undo: () => Promise.resolve() }),
  },
  "one whose slots are never free by themselves": {
    words: "refused without need: concurrency",
    spoil(monotonic) {
      const inner = createMemoryLimiter({ monotonic });
      return { ...methodsOf(inner), take: (wish) => inner.take({ ...wish, forMs: 1e12 }) };
    },
  },
  "one that takes limit by limit": {
    words: "refused without need",
    spoil(monotonic) {
      const inner = createMemoryLimiter({ monotonic });
      return {
        ...methodsOf(inner),
        async take(wish) {
          const taking = await inner.take(wish);
          if (taking.admitted) return taking;
          for (const [index, limitRequest] of wish.limitRequests.entries()) {
            if (!taking.exceeded.includes(limitRequest)) {
              await inner.take({ ...wish, id: `${wish.id} ${index}`, limitRequests: [limitRequest] });
            }
          }
          return taking;
        },
      };
    },
  },
  "one that forgives what was used beyond the estimate": {
    words: "more than a limit",
    spoil(monotonic) {
      const inner = createMemoryLimiter({ monotonic });
      const estimates = new Map<string, number>();
      return {
        ...methodsOf(inner),
        take(wish) {
          const costs = wish.limitRequests.filter(({ unit }) => unit === "tokens").map(({ cost }) => cost);
          estimates.set(wish.id, Math.min(...costs, 1e9));
          return inner.take(wish);
        },
        end: (id, tokens) => inner.end(id, Math.min(tokens, estimates.get(id) ?? 0)),
      };
    },
  },
  "one that refuses what it should report": {
    words: "refused by what only reports",
    spoil(monotonic) {
      const inner = createMemoryLimiter({ monotonic });
      const take: Limiter["take"] = async (wish) => {
        const taking = await inner.take({
          ...wish,
          limitRequests: wish.limitRequests.map((limitRequest) => ({ ...limitRequest, reportOnly: false })),
        });
        const own = (given: LimitRequest) =>
          wish.limitRequests.find(({ name, unit }) => name === given.name && unit === given.unit) ?? given;
        return {
          ...taking,
          exceeded: taking.exceeded.map(own),
          statuses: taking.statuses.map((status) => ({ ...status, limitRequest: own(status.limitRequest) })),
        };
      };
      return { ...methodsOf(inner), take };
    },
  },
  "one that tells a wait that is too short": {
    words: "waiting as told was not enough",
    spoil(monotonic) {
      const inner = createMemoryLimiter({ monotonic });
      return {
        ...methodsOf(inner),
        async take(wish) {
          const taking = await inner.take(wish);
          return { ...taking, retryAfterMs: Math.max(0, taking.retryAfterMs - 1) };
        },
      };
    },
  },
};

for (const [name, { words, spoil }] of Object.entries(BROKEN)) {
  Deno.test(`the simulation finds ${name}`, async () => {
    const found = new Set<string>();
    const isFound = () => [...found].some((message) => message.startsWith(words));
    for (let seed = 1; seed <= 100 && !isFound(); seed++) {
      const create: CreateLimiter = ({ monotonic }) => ({ limiter: spoil(monotonic) });
      await simulate(seed, create, { promisesOnly: true }).catch(({ message }) => found.add(message));
    }
    assert(isFound(), [...found].join("\n"));
  });
}

/** Only the methods are replaced: a spread would omit getters. */
function methodsOf({ take, end, undo, statuses, healthy, close }: Limiter): Limiter {
  return { take, end, undo, statuses, healthy, close };
}
