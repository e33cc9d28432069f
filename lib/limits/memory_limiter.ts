/** A limiter that counts in the memory of one process. */
import type { AdmissionRequest, LimitDecision, Limiter, LimitRequest, LimitStatus, LimitUnit } from "./limiter.ts";
import { assertAdmissionRequest, decideLimits, isAmount } from "./decide.ts";
import { leaseEnd, Window, WINDOW_MS, windowEnd } from "./sliding_window.ts";

/** A limiter in memory. */
export interface MemoryLimiter extends Limiter {
  take(request: AdmissionRequest): LimitDecision;
  end(id: string, tokens: number): LimitStatus[];
  /** Number of remembered limits and requests. Idle limits and ended requests are removed gradually. */
  readonly size: number;
}

type Counts = Readonly<Record<LimitUnit, Window>>;

interface Reserved {
  /**
   * Emptied at the end: the old table of a `Map` that has grown keeps deleted values until a full garbage collection.
   */
  limitRequests: readonly LimitRequest[];
  /** When its requests and tokens stop counting. */
  windowEnd: number;
  /** When its concurrency slots expire. */
  leaseEnd: number;
}

/** Time after its lease in which a request can still be ended with its actual tokens, in milliseconds. */
export const LATE_MS = WINDOW_MS;

/** Entries that each `take` and each new owner check: more than they add, so that the maps shrink. */
const SWEPT_PER_CALL = 2;

/** Creates an empty limiter. @param monotonic monotonic clock in milliseconds */
export function createMemoryLimiter({ monotonic }: { monotonic: () => number }): MemoryLimiter {
  const windows = new LimitWindows();
  const requests = new Map<string, Reserved>();
  const sweepRequests = createSweep(requests, isForgotten);

  // Whole milliseconds, so that every wait is exact.
  const clock = () => Math.floor(monotonic());

  /** Removes a request and returns it; undefined if it is unknown or has expired. */
  function forget(id: string, now: number): Reserved | undefined {
    const reserved = requests.get(id);
    requests.delete(id);
    return reserved === undefined || isForgotten(reserved, now) ? undefined : reserved;
  }

  return {
    // Decides and reserves synchronously, so that no other request comes in between.
    take({ id, limitRequests, forMs, skipStatuses = false }) {
      assertAdmissionRequest({ id, limitRequests, forMs }, { known: requests.has(id) });
      const now = clock();
      windows.sweep(now);
      sweepRequests(now);
      const { admitted, exceeded, retryAfterMs } = decideLimits(
        limitRequests,
        (limitRequest) => windows.waitFor(limitRequest, now),
      );
      if (admitted && limitRequests.length > 0) {
        const reserved = { limitRequests, windowEnd: windowEnd(now), leaseEnd: leaseEnd(now, forMs) };
        windows.addAll(reserved, now);
        requests.set(id, reserved);
      }
      const statuses = admitted && skipStatuses ? [] : windows.statuses(limitRequests, now);
      return { admitted, exceeded, retryAfterMs, statuses };
    },
    end(id, tokens) {
      const now = clock();
      const reserved = forget(id, now);
      if (reserved === undefined) return [];
      const isValid = isAmount(tokens);
      const statuses = windows.end(reserved, { tokens: isValid ? tokens : undefined, now });
      reserved.limitRequests = [];
      if (!isValid) throw new RangeError(`Cannot end "${id}": ${tokens} is not a number of tokens`);
      return statuses;
    },
    undo(id) {
      const reserved = forget(id, clock());
      if (reserved !== undefined) windows.removeAll(reserved);
      return Promise.resolve();
    },
    statuses: (limitRequests) => Promise.resolve(windows.statuses(limitRequests, clock())),
    healthy: true,
    close: () => Promise.resolve(),
    get size() {
      return windows.size + requests.size;
    },
  };
}

class LimitWindows {
  readonly #counts = new Map<string, Counts>();
  /** Removes idle owners gradually. */
  readonly sweep = createSweep(this.#counts, isIdle);

  get size(): number {
    return this.#counts.size;
  }

  waitFor(limitRequest: LimitRequest, now: number): number {
    const { limit, cost } = limitRequest;
    return this.#find(limitRequest)?.waitFor(cost, { limit, now }) ?? (cost <= limit ? 0 : Infinity);
  }

  statuses(limitRequests: readonly LimitRequest[], now: number): LimitStatus[] {
    const statuses: LimitStatus[] = [];
    for (const limitRequest of limitRequests) statuses.push(statusOf(limitRequest, this.#find(limitRequest), now));
    return statuses;
  }

  addAll(reserved: Reserved, now: number): void {
    for (const limitRequest of reserved.limitRequests) {
      this.#findOrAdd(limitRequest, now).add(limitRequest.cost, endOf(limitRequest, reserved));
    }
  }

  removeAll(reserved: Reserved): void {
    for (const limitRequest of reserved.limitRequests) {
      this.#find(limitRequest)?.remove(limitRequest.cost, endOf(limitRequest, reserved));
    }
  }

  /** Frees the slots, replaces the estimated tokens with the actual number if it is known, and returns the statuses. */
  end(
    { limitRequests, windowEnd, leaseEnd }: Reserved,
    { tokens, now }: { tokens: number | undefined; now: number },
  ): LimitStatus[] {
    const statuses: LimitStatus[] = [];
    for (const limitRequest of limitRequests) {
      const { unit, cost } = limitRequest;
      let window = this.#find(limitRequest);
      if (unit === "concurrency") window?.remove(cost, leaseEnd);
      else if (unit === "tokens" && tokens !== undefined) {
        if (tokens > cost) window ??= this.#findOrAdd(limitRequest, now);
        window?.correct(cost, { actual: tokens, end: windowEnd, now });
      }
      statuses.push(statusOf(limitRequest, window, now));
    }
    return statuses;
  }

  #find({ name, unit }: LimitRequest): Window | undefined {
    return this.#counts.get(name)?.[unit];
  }

  #findOrAdd(limitRequest: LimitRequest, now: number): Window {
    const window = this.#find(limitRequest);
    if (window !== undefined) return window;
    this.sweep(now);
    const added = { requests: new Window(), tokens: new Window(), concurrency: new Window() };
    this.#counts.set(limitRequest.name, added);
    return added[limitRequest.unit];
  }
}

/** Returns the status of a limit. @param window undefined: nothing counts against the limit */
function statusOf(limitRequest: LimitRequest, window: Window | undefined, now: number): LimitStatus {
  const { limit } = limitRequest;
  const remaining = window === undefined ? limit : Math.max(0, limit - window.sum(now));
  return { limitRequest, remaining, resetMs: window?.resetMs(now) ?? 0 };
}

function endOf({ unit }: LimitRequest, { windowEnd, leaseEnd }: Reserved): number {
  return unit === "concurrency" ? leaseEnd : windowEnd;
}

function isForgotten({ leaseEnd }: Reserved, now: number): boolean {
  return leaseEnd + LATE_MS <= now;
}

function isIdle(counts: Counts, now: number): boolean {
  return Object.values(counts).every((window) => window.sum(now) === 0);
}

/** Creates a function that checks the next few entries of a map at each call, and deletes those that are over. */
function createSweep<Value>(
  map: Map<string, Value>,
  isOver: (value: Value, now: number) => boolean,
): (now: number) => void {
  let cursor = map.entries();
  return (now) => {
    for (let count = 0; count < SWEPT_PER_CALL; count++) {
      const { done, value } = cursor.next();
      // A finished iterator cannot continue.
      if (done === true) {
        cursor = map.entries();
        return;
      }
      const [key, entry] = value;
      if (isOver(entry, now)) map.delete(key);
    }
  };
}
