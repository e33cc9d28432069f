/** Counts limits in the memory of one process. */
import type { AdmissionRequest, LimitDecision, Limiter, LimitRequest, LimitStatus, LimitUnit } from "./limiter.ts";
import { assertAdmissionRequest, decide, isAmount } from "./decide.ts";
import { leaseEnd, Window, WINDOW_MS, windowEnd } from "./sliding_window.ts";

/** A limiter in memory. */
export interface MemoryLimiter extends Limiter {
  take(request: AdmissionRequest): LimitDecision;
  end(id: string, tokens: number): LimitStatus[];
  /** Number of limits and requests that it remembers. Idle limits and ended requests are removed gradually. */
  readonly size: number;
}

/** Windows of one owner. */
type Counts = Readonly<Record<LimitUnit, Window>>;

/** A request that was admitted. */
interface Taken {
  limitRequests: readonly LimitRequest[];
  /** End of its requests and tokens. */
  windowEnd: number;
  /** End of its slots. */
  leaseEnd: number;
}

/** Time after the end of its slots in which a request can still be ended with its tokens, in milliseconds. */
export const LATE_MS = WINDOW_MS;

/** Entries looked at by each `take`, and whenever an owner is added: more than are added, so that the map shrinks. */
const SWEPT = 2;

/** Opens a limiter in which nothing is taken. @param monotonic milliseconds of a clock that never goes back */
export function createMemoryLimiter({ monotonic }: { monotonic: () => number }): MemoryLimiter {
  const counts = new Map<string, Counts>();
  const requests = new Map<string, Taken>();
  const sweepCounts = createSweep(counts, isIdle);
  const sweepRequests = createSweep(requests, isForgotten);

  /** Returns whole milliseconds, so that every wait is exact. */
  const clock = () => Math.floor(monotonic());

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

  function forget(id: string, now: number): Taken | undefined {
    const taken = requests.get(id);
    requests.delete(id);
    return taken === undefined || isForgotten(taken, now) ? undefined : taken;
  }

  return {
    // Synchronous from the decision to the change: no other request comes between them.
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
      if (!isAmount(tokens)) throw new RangeError(`Cannot end "${id}": ${tokens} is not a number of tokens`);
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

/** Makes a function that looks at the next few entries of a map at each call and deletes those that have ended. */
function createSweep<Value>(
  map: Map<string, Value>,
  isOver: (value: Value, now: number) => boolean,
): (now: number) => void {
  let cursor = map.entries();
  return (now) => {
    for (let count = 0; count < SWEPT; count++) {
      const { done, value } = cursor.next();
      // A finished iterator stays finished.
      if (done === true) {
        cursor = map.entries();
        return;
      }
      const [key, entry] = value;
      if (isOver(entry, now)) map.delete(key);
    }
  };
}
