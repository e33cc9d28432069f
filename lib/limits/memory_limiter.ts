/** Limits in the memory of one process. They begin anew with it. */
import type { AdmissionRequest, LimitDecision, Limiter, LimitRequest, LimitStatus, LimitUnit } from "./limiter.ts";
import { assertAdmissionRequest, decide, isAmount } from "./decide.ts";
import { leaseEnd, Window, WINDOW_MS, windowEnd } from "./sliding_window.ts";

/** A limiter in memory. */
export interface MemoryLimiter extends Limiter {
  take(wish: AdmissionRequest): LimitDecision;
  end(id: string, tokens: number): LimitStatus[];
  /** Names of limits and requests that it remembers; what is idle or over is forgotten by and by. */
  readonly size: number;
}

/** What counts against the limits of one name. */
type Counts = Readonly<Record<LimitUnit, Window>>;

/** A request that has taken. */
interface Taken {
  limitRequests: readonly LimitRequest[];
  /** When its requests and tokens leave their windows. */
  windowEnd: number;
  /** When its slots are free whatever happens. */
  leaseEnd: number;
}

/** How long after its slots are free whatever happens a request may still tell its tokens, in milliseconds. */
export const LATE_MS = WINDOW_MS;

/** Entries looked at by each `take`, and whenever a name is added: more than are added, so that what is idle goes. */
const SWEPT = 2;

/** Opens a limiter in which nothing is taken. @param monotonic milliseconds of a clock that never goes back */
export function createMemoryLimiter({ monotonic }: { monotonic: () => number }): MemoryLimiter {
  const counts = new Map<string, Counts>();
  const requests = new Map<string, Taken>();
  const sweepCounts = createSweep(counts, isIdle);
  const sweepRequests = createSweep(requests, isForgotten);

  /** Whole milliseconds, so that every wait is exact. */
  const clock = () => Math.floor(monotonic());

  /** What counts against a limit; absent where nothing does. */
  function find({ name, unit }: LimitRequest): Window | undefined {
    return counts.get(name)?.[unit];
  }

  function findOrAdd(limitRequest: LimitRequest, now: number): Window {
    const found = find(limitRequest);
    if (found !== undefined) return found;
    sweepCounts(now);
    const added = { requests: new Window(), tokens: new Window(), concurrency: new Window() };
    counts.set(limitRequest.name, added);
    return added[limitRequest.unit];
  }

  function waitFor(limitRequest: LimitRequest, now: number): number {
    const { limit, cost } = limitRequest;
    return find(limitRequest)?.waitFor(cost, { limit, now }) ?? (cost <= limit ? 0 : Infinity);
  }

  function standingsOf(limitRequests: readonly LimitRequest[], now: number): LimitStatus[] {
    const statuses: LimitStatus[] = [];
    for (const limitRequest of limitRequests) {
      const window = find(limitRequest);
      const remaining = window === undefined ? limitRequest.limit : Math.max(0, limitRequest.limit - window.sum(now));
      statuses.push({ limitRequest, remaining, resetMs: window?.resetMs(now) ?? 0 });
    }
    return statuses;
  }

  function takeAll(
    id: string,
    { limitRequests, forMs, now }: { limitRequests: readonly LimitRequest[]; forMs: number; now: number },
  ): void {
    if (limitRequests.length === 0) return;
    const taken = { limitRequests, windowEnd: windowEnd(now), leaseEnd: leaseEnd(now, forMs) };
    for (const limitRequest of limitRequests) {
      findOrAdd(limitRequest, now).add(limitRequest.cost, endOf(limitRequest, taken));
    }
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
    take({ id, limitRequests, forMs, skipStatuses = false }) {
      assertAdmissionRequest({ id, limitRequests, forMs }, { known: requests.has(id) });
      const now = clock();
      sweepCounts(now);
      sweepRequests(now);
      const { admitted, over, retryAfterMs } = decide(limitRequests, (limitRequest) => waitFor(limitRequest, now));
      if (admitted) takeAll(id, { limitRequests, forMs, now });
      const statuses = admitted && skipStatuses ? [] : standingsOf(limitRequests, now);
      return { admitted, over, retryAfterMs, statuses };
    },
    end(id, tokens) {
      const now = clock();
      const taken = forget(id, now);
      if (taken === undefined) return [];
      for (const limitRequest of taken.limitRequests) {
        if (limitRequest.unit === "concurrency") find(limitRequest)?.remove(limitRequest.cost, taken.leaseEnd);
      }
      if (!isAmount(tokens)) throw new RangeError(`Cannot end "${id}": ${tokens} is no number of tokens`);
      for (const limitRequest of taken.limitRequests) {
        if (limitRequest.unit !== "tokens") continue;
        const window = tokens > limitRequest.cost ? findOrAdd(limitRequest, now) : find(limitRequest);
        window?.correct(limitRequest.cost, { actual: tokens, end: taken.windowEnd, now });
      }
      return standingsOf(taken.limitRequests, now);
    },
    undo(id) {
      const taken = forget(id, clock());
      for (const limitRequest of taken?.limitRequests ?? []) {
        if (taken !== undefined) find(limitRequest)?.remove(limitRequest.cost, endOf(limitRequest, taken));
      }
      return Promise.resolve();
    },
    statuses: (limitRequests) => Promise.resolve(standingsOf(limitRequests, clock())),
    healthy: true,
    close: () => Promise.resolve(),
    get size() {
      return counts.size + requests.size;
    },
  };
}

function endOf({ unit }: LimitRequest, { windowEnd, leaseEnd }: Taken): number {
  return unit === "concurrency" ? leaseEnd : windowEnd;
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
