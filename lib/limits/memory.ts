/** Limits in the memory of one process. They begin anew with it. */
import type { Claim, Limiter, LimitUnit, Standing } from "./limiter.ts";
import { leaseEnd, Window, WINDOW_MS, windowEnd } from "./window.ts";

/** A limiter in memory. */
export interface MemoryLimiter extends Limiter {
  /** Names of limits and requests that it remembers; what is idle or over is forgotten by and by. */
  readonly size: number;
}

/** What counts against the limits of one name. */
type Counts = Readonly<Record<LimitUnit, Window>>;

/** A request that has taken. */
interface Taken {
  claims: readonly Claim[];
  /** When its requests and tokens leave their windows. */
  windowEnd: number;
  /** When its slots are free whatever happens. */
  leaseEnd: number;
}

/** Bounds of the wait for a slot, in milliseconds: one may be free at any time. */
const LEAST_SLOT_WAIT_MS = 1_000;
const LONGEST_SLOT_WAIT_MS = 5_000;

/** How long after its slots are free whatever happens a request may still tell its tokens, in milliseconds. */
const LATE_MS = WINDOW_MS;

/** Entries looked at by each `take`, and whenever a name is added: more than are added, so that what is idle goes. */
const SWEPT = 2;

/** One cost that is no number would spoil a sum for ever. */
const isAmount = (value: number) => Number.isSafeInteger(value) && value >= 0;

/** Opens a limiter in which nothing is taken. @param monotonic milliseconds of a clock that never goes back */
export function createMemoryLimiter({ monotonic }: { monotonic: () => number }): MemoryLimiter {
  const counts = new Map<string, Counts>();
  const requests = new Map<string, Taken>();
  const sweepCounts = createSweep(counts, isIdle);
  const sweepRequests = createSweep(requests, isForgotten);

  /** Whole milliseconds, so that every wait is exact. */
  const clock = () => Math.floor(monotonic());

  /** What counts against a limit; absent where nothing does. */
  function find({ name, unit }: Claim): Window | undefined {
    return counts.get(name)?.[unit];
  }

  function findOrAdd(claim: Claim, now: number): Window {
    const found = find(claim);
    if (found !== undefined) return found;
    sweepCounts(now);
    const added = { requests: new Window(), tokens: new Window(), concurrency: new Window() };
    counts.set(claim.name, added);
    return added[claim.unit];
  }

  function waitFor(claim: Claim, now: number): number {
    const { unit, limit, cost } = claim;
    const waitMs = find(claim)?.waitFor(cost, { limit, now }) ?? (cost <= limit ? 0 : Infinity);
    if (unit !== "concurrency" || waitMs === 0 || waitMs === Infinity) return waitMs;
    return Math.min(Math.max(waitMs, LEAST_SLOT_WAIT_MS), LONGEST_SLOT_WAIT_MS);
  }

  function standingsOf(claims: readonly Claim[], now: number): Standing[] {
    return claims.map((claim) => {
      const window = find(claim);
      const sum = window?.sum(now) ?? 0;
      return { claim, remaining: Math.max(0, claim.limit - sum), resetMs: window?.resetMs(now) ?? 0 };
    });
  }

  /** Claims without room, in the order of `Taking.over`. */
  function overOf(claims: readonly Claim[], now: number): { claim: Claim; waitMs: number }[] {
    return claims.map((claim) => ({ claim, waitMs: waitFor(claim, now) }))
      .filter(({ waitMs }) => waitMs > 0)
      .sort((a, b) => Number(a.claim.reportOnly) - Number(b.claim.reportOnly) || compareWaits(b.waitMs, a.waitMs));
  }

  function takeAll(id: string, { claims, forMs, now }: { claims: readonly Claim[]; forMs: number; now: number }): void {
    if (claims.length === 0) return;
    const taken = { claims, windowEnd: windowEnd(now), leaseEnd: leaseEnd(now, forMs) };
    for (const claim of claims) findOrAdd(claim, now).add(claim.cost, endOf(claim, taken));
    requests.set(id, taken);
  }

  /** What an id took. It is not known any more afterwards. */
  function forget(id: string, now: number): Taken | undefined {
    const taken = requests.get(id);
    requests.delete(id);
    return taken === undefined || isForgotten(taken, now) ? undefined : taken;
  }

  return {
    // Nothing waits between the look and the taking, so that no other request comes between them.
    // deno-lint-ignore require-await -- what is thrown here must reject
    async take({ id, claims, forMs }) {
      if (requests.has(id)) throw new RangeError(`Cannot take for "${id}": it has taken before`);
      if (!(forMs >= 0 && forMs < Infinity && claims.every(({ cost, limit }) => isAmount(cost) && isAmount(limit)))) {
        throw new RangeError(`Cannot take for "${id}": a cost, a limit or its time is no amount`);
      }
      const now = clock();
      sweepCounts(now);
      sweepRequests(now);
      const over = overOf(claims, now);
      const refusal = over[0]?.claim.reportOnly === false ? over[0] : undefined;
      if (refusal === undefined) takeAll(id, { claims, forMs, now });
      return {
        admitted: refusal === undefined,
        standings: standingsOf(claims, now),
        over: over.map(({ claim }) => claim),
        retryAfterMs: refusal?.waitMs ?? 0,
      };
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async end(id, tokens) {
      const now = clock();
      const taken = forget(id, now);
      if (taken === undefined) return [];
      for (const claim of taken.claims) {
        if (claim.unit === "concurrency") find(claim)?.remove(claim.cost, taken.leaseEnd);
      }
      if (!isAmount(tokens)) throw new RangeError(`Cannot end "${id}": ${tokens} is no number of tokens`);
      for (const claim of taken.claims) {
        if (claim.unit !== "tokens") continue;
        const window = tokens > claim.cost ? findOrAdd(claim, now) : find(claim);
        window?.correct(claim.cost, { actual: tokens, end: taken.windowEnd, now });
      }
      return standingsOf(taken.claims, now);
    },
    undo(id) {
      const taken = forget(id, clock());
      for (const claim of taken?.claims ?? []) {
        if (taken !== undefined) find(claim)?.remove(claim.cost, endOf(claim, taken));
      }
      return Promise.resolve();
    },
    standings: (claims) => Promise.resolve(standingsOf(claims, clock())),
    healthy: true,
    close: () => Promise.resolve(),
    get size() {
      return counts.size + requests.size;
    },
  };
}

function endOf({ unit }: Claim, { windowEnd, leaseEnd }: Taken): number {
  return unit === "concurrency" ? leaseEnd : windowEnd;
}

/** Two waits without end are equal. */
function compareWaits(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

function isForgotten({ leaseEnd }: Taken, now: number): boolean {
  return leaseEnd + LATE_MS <= now;
}

function isIdle({ requests, tokens, concurrency }: Counts, now: number): boolean {
  return requests.sum(now) === 0 && tokens.sum(now) === 0 && concurrency.sum(now) === 0;
}

/** Looks at a few entries of a map at each call, round and round, and deletes those that are over. */
function createSweep<Value>(
  map: Map<string, Value>,
  isOver: (value: Value, now: number) => boolean,
): (now: number) => void {
  let hand = map.entries();
  return (now) => {
    for (let count = 0; count < SWEPT; count++) {
      const { done, value } = hand.next();
      // An iterator that has come to its end stays there.
      if (done === true) {
        hand = map.entries();
        return;
      }
      const [key, entry] = value;
      if (isOver(entry, now)) map.delete(key);
    }
  };
}
