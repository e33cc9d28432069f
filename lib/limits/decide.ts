/** Checks requests for admission and decides about them, for all limiters. */
import { compareValues } from "../compare_values.ts";
import type { AdmissionRequest, LimitDecision, LimitRequest } from "./limiter.ts";

/** Bounds of the wait for a slot in a decision, in milliseconds: a slot may become free at any time. */
const MIN_SLOT_WAIT_MS = 1_000;
const MAX_SLOT_WAIT_MS = 5_000;

/** Returns whether a number can be added to a sum: a non-negative integer. */
export function isAmount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/**
 * Checks a request for admission.
 * @param state `known`: whether its id has a reservation already
 * @throws {RangeError} if it has one, or if an amount or the duration is not a non-negative number
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

/** A decision without limit statuses. */
type Outcome = Omit<LimitDecision, "statuses">;

const ADMITTED: Outcome = { admitted: true, exceeded: [], retryAfterMs: 0 };

/**
 * Decides whether a request is admitted.
 * @param waitFor returns the milliseconds until a limit has room: 0 if it has room now, `Infinity` if it never will
 */
export function decideLimits(
  limitRequests: readonly LimitRequest[],
  waitFor: (limitRequest: LimitRequest, index: number) => number,
): Outcome {
  if (limitRequests.every((limitRequest, index) => waitFor(limitRequest, index) === 0)) return ADMITTED;
  const exceeded = limitRequests
    .map((limitRequest, index) => ({ limitRequest, waitMs: boundWait(limitRequest, waitFor(limitRequest, index)) }))
    .filter(({ waitMs }) => waitMs > 0)
    .sort((a, b) =>
      Number(a.limitRequest.reportOnly) - Number(b.limitRequest.reportOnly) || compareValues(b.waitMs, a.waitMs)
    );
  const refusal = exceeded[0]?.limitRequest.reportOnly === false ? exceeded[0] : undefined;
  return {
    admitted: refusal === undefined,
    exceeded: exceeded.map(({ limitRequest }) => limitRequest),
    retryAfterMs: refusal?.waitMs ?? 0,
  };
}

/** Bounds the wait for a slot; other waits are exact. */
function boundWait({ unit }: LimitRequest, waitMs: number): number {
  if (unit !== "concurrency" || waitMs === 0 || waitMs === Infinity) return waitMs;
  return Math.min(Math.max(waitMs, MIN_SLOT_WAIT_MS), MAX_SLOT_WAIT_MS);
}
