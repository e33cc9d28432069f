/**
 * Requests with several names arrive and end at random, and the limiter is compared with the slow reference at every
 * step.
 */
import { assert, assertEquals } from "@std/assert";
import type { LimitDecision, Limiter, LimitRequest, LimitUnit } from "../../lib/limits/limiter.ts";
import { seeded } from "../support/random.ts";
import { Reference } from "./reference.ts";

/** A limiter under test. */
export interface OpenLimiter {
  limiter: Limiter;
  close?(): Promise<void>;
}

/** Opens a limiter in which nothing is taken, on a clock in milliseconds that need not be whole. */
export type CreateLimiter = (parts: { monotonic: () => number }) => OpenLimiter | Promise<OpenLimiter>;

const STEPS = 50;
const NAMES = ["key:a", "key:b", "group:default", "model:acme/one"];
const UNITS: readonly LimitUnit[] = ["requests", "tokens", "concurrency"];
/** Steps of time: within a bucket, across its edge, about a window. */
const PAUSES = [0, 0, 0, 1, 7.25, 250, 499, 500, 501, 3000, 20_000.5, 59_499, 59_999, 60_000, 60_500, 61_000];
const LONGEST_MS = 90_000;

/** Detail of the checks of a run. */
export interface Watch {
  /** Counts events, so that a test can assert that all kinds occurred. */
  seen?: Map<string, number>;
  /** True: only the promises are checked, and not whether every number is that of the log. */
  promisesOnly?: boolean;
}

/** Plays one seed. @throws the first broken promise */
export async function simulate(
  seed: number,
  create: CreateLimiter,
  { seen = new Map(), promisesOnly = false }: Watch = {},
): Promise<void> {
  const { below, pick } = seeded(seed);
  const see = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
  let clock = below(100_000);
  const now = () => Math.floor(clock);
  const { limiter, close } = await create({ monotonic: () => clock });
  const reference = new Reference();
  const limits = NAMES.flatMap((name) =>
    UNITS.filter(() => below(3) > 0).map((unit) => ({
      name,
      unit,
      limit: unit === "tokens" ? 1 + below(1000) : 1 + below(5),
      reportOnly: below(5) === 0,
    }))
  );
  const open: string[] = [];
  const ended: string[] = [];
  let serial = 0;

  function wish() {
    const names = NAMES.filter(() => below(2) === 0);
    const limitRequests: LimitRequest[] = limits.filter(({ name }) => names.includes(name)).map((limit) => ({
      ...limit,
      cost: limit.unit === "tokens" ? below(limit.limit + (below(20) === 0 ? 50 : 1)) : 1,
    }));
    return { limitRequests, forMs: pick([0, 1, 300, 500, 5000.5, 30_000, LONGEST_MS]) };
  }

  /** As many equal concurrent requests. */
  async function take(
    wish: { limitRequests: LimitRequest[]; forMs: number },
    many: number,
  ): Promise<Omit<LimitDecision, "statuses">> {
    const ids = Array.from({ length: many }, () => `r${++serial}`);
    const takings = await Promise.all(ids.map((id) => limiter.take({ id, ...wish })));
    // Whatever the order of arrival, the admitted requests came first.
    const order = takings.map((taking, index) => ({ taking, id: ids[index] ?? "" }))
      .sort((a, b) => Number(b.taking.admitted) - Number(a.taking.admitted));
    for (const { taking: { statuses, ...taking }, id } of order) {
      const expected = reference.expect(wish, now());
      if (taking.admitted) reference.take({ id, ...wish }, now());
      reference.checkPromise(wish.limitRequests, { ...taking, now: now() });
      if (!promisesOnly) {
        assertEquals(taking, expected, "not what the log says");
        assertEquals(statuses, reference.statuses(wish.limitRequests, now()), "not what the log leaves");
      }
      if (taking.admitted) open.push(id);
      see(!taking.admitted ? "refused" : taking.exceeded.length > 0 ? "reported" : "admitted");
      if (taking.retryAfterMs === Infinity) see("never");
      for (const { unit } of taking.exceeded) see(`over ${unit}`);
    }
    return order.at(-1)?.taking ?? { admitted: true, exceeded: [], retryAfterMs: 0 };
  }

  /** Waiting for the announced time is enough; one bucket less is not. */
  async function wait(
    wish: { limitRequests: LimitRequest[]; forMs: number },
    { exceeded, retryAfterMs }: Omit<LimitDecision, "statuses">,
  ): Promise<void> {
    if (retryAfterMs === Infinity || exceeded.some(({ unit, reportOnly }) => unit === "concurrency" && !reportOnly)) {
      return;
    }
    const before = Math.max(0, retryAfterMs - 500);
    clock += before;
    if (before > 0) assert(!(await take(wish, 1)).admitted, "a bucket less was enough");
    clock += retryAfterMs - before;
    assert((await take(wish, 1)).admitted, "waiting as told was not enough");
    see("waited");
  }

  async function end(id: string): Promise<void> {
    const tokens = pick([0, below(1000), below(1000), 1500]);
    await limiter.end(id, tokens);
    reference.end(id, tokens, now());
  }

  /** Ends one of them in a random way. */
  async function endOne(ids: string[]): Promise<void> {
    const [id] = ids.splice(below(ids.length), 1);
    if (id === undefined) return;
    see("ended");
    if (below(3) === 0) {
      await limiter.undo(id);
      reference.undo(id, now());
    } else await end(id);
    ended.push(id);
  }

  const limitRequests: LimitRequest[] = limits.map((limit) => ({ ...limit, cost: 0 }));
  for (let step = 0; step < STEPS; step++) {
    const dice = below(20);
    if (dice < 10) {
      const wanted = wish();
      const taking = await take(wanted, below(4) === 0 ? 1 + below(6) : 1);
      if (!taking.admitted && below(2) === 0) await wait(wanted, taking);
    } else if (dice < 14) await endOne(open);
    else if (dice < 15 && ended.length > 0) await endOne([pick(ended)]);
    else clock += pick(PAUSES);
    if (promisesOnly) continue;
    assertEquals(
      await limiter.statuses(limitRequests),
      reference.statuses(limitRequests, now()),
      "not what the log leaves",
    );
  }
  // A request that is never ended is released when its time is over.
  const forgotten = below(2) === 0;
  while (!forgotten && open.length > 0) await endOne(open);
  if (!forgotten) {
    const slots = limitRequests.filter(({ unit }) => unit === "concurrency");
    reference.checkFree(await limiter.statuses(slots));
  }
  clock += LONGEST_MS + 61_000;
  reference.checkFree(await limiter.statuses(limitRequests));
  await close?.();
}
