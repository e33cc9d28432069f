/** Behaviour of every limiter, wherever it stores its counts. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Limiter, LimitRequest, LimitUnit } from "../../lib/limits/limiter.ts";
import { type CreateLimiter, simulate } from "./simulate.ts";
import { QUICK, rounds } from "../support/skip.ts";

/** A clock that the test turns. */
interface Clock {
  now: number;
}

function limitRequest(unit: LimitUnit, change: Partial<LimitRequest> = {}): LimitRequest {
  return { name: "key:a", unit, limit: 2, cost: 1, reportOnly: false, ...change };
}

async function left(limiter: Limiter, ...limitRequests: LimitRequest[]): Promise<number[]> {
  return (await limiter.statuses(limitRequests)).map(({ remaining }) => remaining);
}

const BEHAVIOURS: Record<string, (limiter: Limiter, clock: Clock) => Promise<void>> = {
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
  "refuses invalid amounts and a second reservation, without harm": async (limiter) => {
    const limitRequests = [limitRequest("concurrency"), limitRequest("tokens")];
    for (const cost of [NaN, -1, 0.5, Infinity]) {
      const request = { id: "bad", limitRequests: [...limitRequests, limitRequest("requests", { cost })], forMs: 1 };
      await assertRejects(async () => await limiter.take(request), RangeError);
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

/** Tests a limiter: each guarantee separately, then `seeds` random runs against a log of all events. */
export function testLimiter(
  name: string,
  create: CreateLimiter,
  { seeds = QUICK ? 150 : rounds(3000) }: { seeds?: number } = {},
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
