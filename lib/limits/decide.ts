/** Checks and decisions shared by all limiters. */
import type { AdmissionRequest, LimitDecision, LimitRequest } from "./limiter.ts";

/** Bounds of the wait for a slot, in milliseconds: one may be free at any time. */
const MIN_SLOT_WAIT_MS = 1_000;
const LONGEST_SLOT_WAIT_MS = 5_000;

/** Returns whether a number can be counted. Any other would corrupt a sum. */
export function isAmount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/**
 * Checks a request. @throws {RangeError} if an amount or the time is not a non-negative number, or the id exists
 * already
 */
export function assertAdmissionRequest(
  { id, limitRequests, forMs }: AdmissionRequest,
  { known }: { known: boolean },
): void {
  if (known) throw new RangeError(`Cannot reserve limits for "${id}": it has a reservation already`);
  const areAmounts = limitRequests.every(({ cost, limit }) => isAmount(cost) && isAmount(limit));
  if (!(forMs >= 0 && forMs < Infinity && areAmounts)) {
    throw new RangeError(
      `Cannot reserve limits for "${id}": a cost, a limit or its duration is negative or not a number`,
    );
  }
}

/** A decision without statuses. */
type Outcome = Omit<LimitDecision, "statuses">;

const ADMITTED: Outcome = { admitted: true, exceeded: [], retryAfterMs: 0 };

/**
 * Decides whether a request is admitted.
 * @param waitFor returns the milliseconds until a limit has room: 0 at once, `Infinity` never
 */
export function decide(
  limitRequests: readonly LimitRequest[],
  waitFor: (limitRequest: LimitRequest, index: number) => number,
): Outcome {
  if (limitRequests.every((limitRequest, index) => waitFor(limitRequest, index) === 0)) return ADMITTED;
  const exceeded = limitRequests
    .map((limitRequest, index) => ({ limitRequest, waitMs: boundWait(limitRequest, waitFor(limitRequest, index)) }))
    .filter(({ waitMs }) => waitMs > 0)
    .sort((a, b) =>
      Number(a.limitRequest.reportOnly) - Number(b.limitRequest.reportOnly) || compareWaits(b.waitMs, a.waitMs)
    );
  const refusal = exceeded[0]?.limitRequest.reportOnly === false ? exceeded[0] : undefined;
  return {
    admitted: refusal === undefined,
    exceeded: exceeded.map(({ limitRequest }) => limitRequest),
    retryAfterMs: refusal?.waitMs ?? 0,
  };
}

function boundWait({ unit }: LimitRequest, waitMs: number): number {
  if (unit !== "concurrency" || waitMs === 0 || waitMs === Infinity) return waitMs;
  return Math.min(Math.max(waitMs, MIN_SLOT_WAIT_MS), LONGEST_SLOT_WAIT_MS);
}

/** Compares waits; two infinite waits are equal. */
function compareWaits(a: number, b: number): number {
  return a === b ? 0 : a - b;
}
