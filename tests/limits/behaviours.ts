/** Behaviour of every limiter, wherever it stores its counts. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Limiter, LimitRequest, LimitUnit } from "../../lib/limits/limiter.ts";
import { type CreateLimiter, simulate } from "./simulate.ts";
import { rounds } from "../support/skip.ts";

/** A clock that the test turns. */
interface Clock {
  now: number;
}

function limitRequest(unit: LimitUnit, change: Partial<LimitRequest> = {}): LimitRequest {
  return { name: "key:a", unit, limit: 2, cost: 1, reportOnly: false, ...change };
}

/** Takes with fresh ids. */
function taker(limiter: Limiter) {
  let serial = 0;
  return async (...limitRequests: LimitRequest[]) => {
    const id = `r${++serial}`;
    return { id, ...await limiter.take({ id, limitRequests, forMs: 10_000 }) };
  };
}

async function left(limiter: Limiter, ...limitRequests: LimitRequest[]): Promise<number[]> {
  return (await limiter.statuses(limitRequests)).map(({ remaining }) => remaining);
}

const BEHAVIOURS: Record<string, (limiter: Limiter, clock: Clock) => Promise<void>> = {
  "admits a limit and not one more within 60 seconds, at the edges of its buckets too": async (limiter, clock) => {
    const take = taker(limiter);
    const one = limitRequest("requests");
    clock.now = 499.5;
    assertEquals((await take(one)).statuses, [{ limitRequest: one, remaining: 1, resetMs: 60_001 }]);
    clock.now = 500;
    assertEquals((await take(one)).statuses, [{ limitRequest: one, remaining: 0, resetMs: 60_500 }]);
    const { id: _, ...refusal } = await take(one);
    assertEquals(refusal, {
      admitted: false,
      statuses: [{ limitRequest: one, remaining: 0, resetMs: 60_500 }],
      exceeded: [one],
      retryAfterMs: 60_000,
    });
    clock.now = 60_499.9;
    assertEquals((await take(one)).retryAfterMs, 1);
    clock.now = 60_500;
    assertEquals((await take(one)).admitted, true);
    assertEquals((await take(one)).retryAfterMs, 500);
  },
  "takes nothing of any limit where one of them refuses": async (limiter) => {
    const take = taker(limiter);
    const limitRequests = [
      limitRequest("requests", { limit: 9 }),
      limitRequest("tokens", { limit: 9 }),
      limitRequest("concurrency", { limit: 9 }),
    ];
    const full = limitRequest("concurrency", { name: "model:m", limit: 1 });
    await take(full);
    assertEquals((await take(...limitRequests, full)).admitted, false);
    assertEquals(await left(limiter, ...limitRequests), [9, 9, 9]);
  },
  "never admits what takes more than a whole limit, and says so": async (limiter) => {
    const take = taker(limiter);
    const tooMuch = limitRequest("tokens", { limit: 100, cost: 101 });
    const { admitted, exceeded, retryAfterMs } = await take(limitRequest("requests"), tooMuch);
    assertEquals([admitted, exceeded, retryAfterMs], [false, [tooMuch], Infinity]);
    assertEquals((await take({ ...tooMuch, cost: 100 })).admitted, true);
    assertEquals((await take(tooMuch)).retryAfterMs, Infinity);
  },
  "of several refusals tells the longest wait, and its limit first": async (limiter, clock) => {
    const take = taker(limiter);
    const [slot, group, key] = [
      limitRequest("concurrency", { name: "model:m", limit: 1 }),
      limitRequest("requests", { name: "group:g", limit: 1 }),
      limitRequest("requests", { limit: 1 }),
    ];
    const reported = limitRequest("tokens", { limit: 5, cost: 6, reportOnly: true });
    await take(slot, group);
    clock.now = 20_000;
    await take(slot, key);
    clock.now = 25_000;
    const { exceeded, retryAfterMs } = await take(reported, slot, group, key);
    assertEquals([exceeded, retryAfterMs], [[key, group, slot, reported], 55_500]);
  },
  "frees a slot at the end, when it is taken back, and when its time is over": async (limiter, clock) => {
    const take = taker(limiter);
    const slot = limitRequest("concurrency", { limit: 3 });
    const [one, two] = [await take(slot), await take(slot)];
    clock.now = 4_000;
    await take(slot);
    assertEquals((await take(slot)).retryAfterMs, 5_000);
    await limiter.end(one.id, 0);
    await limiter.end(one.id, 0);
    assertEquals(await left(limiter, slot), [1]);
    await limiter.undo(two.id);
    await limiter.end(two.id, 0);
    assertEquals(await left(limiter, slot), [2]);
    await Promise.all([take(slot), take(slot)]);
    clock.now = 13_900;
    assertEquals((await take(slot)).retryAfterMs, 1_000);
    clock.now = 14_000;
    assertEquals(await left(limiter, slot), [3]);
  },
  "gives back what was estimated too much, and a request that is undone": async (limiter, clock) => {
    const take = taker(limiter);
    const [tokens, requests] = [limitRequest("tokens", { limit: 100, cost: 60 }), limitRequest("requests")];
    const one = await take(tokens, requests);
    assertEquals((await take(tokens, requests)).admitted, false);
    await limiter.end(one.id, 30);
    await limiter.end(one.id, 0);
    assertEquals(await left(limiter, tokens, requests), [70, 1]);
    const two = await take(tokens, requests);
    await limiter.undo(two.id);
    await limiter.undo(two.id);
    assertEquals(await left(limiter, tokens, requests), [70, 1]);
    const three = await take(tokens, requests);
    clock.now = 61_000;
    await limiter.end(three.id, 0);
    assertEquals(await left(limiter, tokens, requests), [100, 2]);
  },
  "admits nothing while more was used than was estimated": async (limiter, clock) => {
    const take = taker(limiter);
    const tokens = limitRequest("tokens", { limit: 100, cost: 10 });
    const [one, two] = [await take(tokens), await take(tokens)];
    await limiter.end(one.id, 130);
    assertEquals(await limiter.statuses([tokens]), [{ limitRequest: tokens, remaining: 0, resetMs: 60_500 }]);
    assertEquals((await take({ ...tokens, cost: 0 })).retryAfterMs, 60_500);
    clock.now = 60_500;
    assertEquals(await left(limiter, tokens), [100]);
    // Its reservation has left the window: the debt counts from now on.
    await limiter.end(two.id, 105);
    assertEquals(await left(limiter, tokens), [5]);
    clock.now = 120_999;
    assertEquals(await left(limiter, tokens), [5]);
    clock.now = 121_000;
    assertEquals(await left(limiter, tokens), [100]);
  },
  "counts report-only limits, tells of them and refuses nothing": async (limiter) => {
    const take = taker(limiter);
    const limitRequests = [limitRequest("requests"), limitRequest("tokens", { cost: 3 }), limitRequest("concurrency")]
      .map((limitRequest) => ({ ...limitRequest, reportOnly: true }));
    const overs = [];
    for (let count = 0; count < 3; count++) {
      const { admitted, exceeded, retryAfterMs } = await take(...limitRequests);
      overs.push(exceeded.map(({ unit }) => unit).sort());
      assertEquals([admitted, retryAfterMs], [true, 0]);
    }
    assertEquals(overs, [["tokens"], ["tokens"], ["concurrency", "requests", "tokens"]]);
    assertEquals(await left(limiter, ...limitRequests), [0, 0, 0]);
  },
  "admits no more of many that come at once": async (limiter) => {
    const take = taker(limiter);
    const limitRequests = [limitRequest("requests", { limit: 7 }), limitRequest("concurrency", { limit: 5 })];
    const takings = await Promise.all(Array.from({ length: 50 }, () => take(...limitRequests)));
    assertEquals(takings.filter(({ admitted }) => admitted).length, 5);
    assertEquals(await left(limiter, ...limitRequests), [2, 0]);
  },
  "has nothing to say without limits, or about an id it does not know": async (limiter) => {
    assertEquals(await limiter.take({ id: "r", limitRequests: [], forMs: 1 }), {
      admitted: true,
      statuses: [],
      exceeded: [],
      retryAfterMs: 0,
    });
    await limiter.end("nobody", 5);
    await limiter.undo("nobody");
    assertEquals(await left(limiter, limitRequest("tokens")), [2]);
  },
  "refuses amounts that are none, and a second taking, without harm": async (limiter) => {
    const limitRequests = [limitRequest("concurrency"), limitRequest("tokens")];
    for (const cost of [NaN, -1, 0.5, Infinity]) {
      const wish = { id: "bad", limitRequests: [...limitRequests, limitRequest("requests", { cost })], forMs: 1 };
      await assertRejects(async () => await limiter.take(wish), RangeError);
    }
    for (const forMs of [NaN, -1, Infinity]) {
      await assertRejects(async () => await limiter.take({ id: "bad", limitRequests, forMs }), RangeError);
    }
    assertEquals(await left(limiter, ...limitRequests), [2, 2]);
    await limiter.take({ id: "r", limitRequests, forMs: 1000 });
    await assertRejects(async () => await limiter.take({ id: "r", limitRequests, forMs: 1000 }), RangeError, "already");
    await assertRejects(async () => await limiter.end("r", NaN), RangeError);
    assertEquals(await left(limiter, ...limitRequests), [2, 1]);
    await limiter.take({ id: "slot", limitRequests: [limitRequest("concurrency")], forMs: 1000 });
    await assertRejects(async () => await limiter.end("slot", -1), RangeError);
    assertEquals(await left(limiter, ...limitRequests), [2, 1]);
  },
};

/** Everything that the simulation must have met. */
const MET = [
  "admitted",
  "refused",
  "reported",
  "never",
  "waited",
  "ended",
  "over requests",
  "over tokens",
  "over concurrency",
];

/** Tests a limiter: every promise by itself, then `seeds` runs by chance against a log of all events. */
export function testLimiter(
  name: string,
  create: CreateLimiter,
  { seeds = rounds(3000) }: { seeds?: number } = {},
): void {
  for (const [promise, behaviour] of Object.entries(BEHAVIOURS)) {
    Deno.test(`${name} ${promise}`, async () => {
      const clock = { now: 0 };
      const { limiter, close } = await create({ monotonic: () => clock.now });
      try {
        await behaviour(limiter, clock);
      } finally {
        await close?.();
      }
    });
  }
  Deno.test(`${name} agrees with a model that logs all events, in random histories`, async () => {
    const seen = new Map<string, number>();
    for (let seed = 1; seed <= seeds; seed++) {
      try {
        await simulate(seed, create, { seen });
      } catch (cause) {
        throw new Error(`seed ${seed}`, { cause });
      }
    }
    for (const what of MET) assert((seen.get(what) ?? 0) > seeds / 20, `${what}: ${seen.get(what)}`);
  });
}
