/** What all limiters do alike: they look at what is wished for, and decide what they have found. */
import type { AdmissionRequest, LimitDecision, LimitRequest } from "./limiter.ts";

/** Bounds of the wait for a slot, in milliseconds: one may be free at any time. */
const LEAST_SLOT_WAIT_MS = 1_000;
const LONGEST_SLOT_WAIT_MS = 5_000;

/** Whether it may be counted: one cost that is no number would spoil a sum for ever. */
export function isAmount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** @throws {RangeError} where an amount or the time is none, or the id is taken already */
export function assertAdmissionRequest(
  { id, limitRequests, forMs }: AdmissionRequest,
  { known }: { known: boolean },
): void {
  if (known) throw new RangeError(`Cannot take for "${id}": it has taken before`);
  if (
    !(forMs >= 0 && forMs < Infinity && limitRequests.every(({ cost, limit }) => isAmount(cost) && isAmount(limit)))
  ) {
    throw new RangeError(`Cannot take for "${id}": a cost, a limit or its time is no amount`);
  }
}

/** What is said where there is room for everything. */
const ROOM: Judgement = { admitted: true, over: [], retryAfterMs: 0 };

/** Whether a request is admitted, but for how its limits stand. */
type Judgement = Omit<LimitDecision, "statuses">;

/**
 * Whether a request is admitted, and what stands or would stand against it.
 * @param waitFor milliseconds until there is room for a limitRequest: 0 at once, `Infinity` never
 */
export function decide(
  limitRequests: readonly LimitRequest[],
  waitFor: (limitRequest: LimitRequest, index: number) => number,
): Judgement {
  if (limitRequests.every((limitRequest, index) => waitFor(limitRequest, index) === 0)) return ROOM;
  const over = limitRequests.map((limitRequest, index) => ({
    limitRequest,
    waitMs: toldWait(limitRequest, waitFor(limitRequest, index)),
  }))
    .filter(({ waitMs }) => waitMs > 0)
    .sort((a, b) =>
      Number(a.limitRequest.reportOnly) - Number(b.limitRequest.reportOnly) || compareWaits(b.waitMs, a.waitMs)
    );
  const refusal = over[0]?.limitRequest.reportOnly === false ? over[0] : undefined;
  return {
    admitted: refusal === undefined,
    over: over.map(({ limitRequest }) => limitRequest),
    retryAfterMs: refusal?.waitMs ?? 0,
  };
}

function toldWait({ unit }: LimitRequest, waitMs: number): number {
  if (unit !== "concurrency" || waitMs === 0 || waitMs === Infinity) return waitMs;
  return Math.min(Math.max(waitMs, LEAST_SLOT_WAIT_MS), LONGEST_SLOT_WAIT_MS);
}

/** Two waits without end are equal. */
function compareWaits(a: number, b: number): number {
  return a === b ? 0 : a - b;
}
