/** What all limiters do alike: they look at what is wished for, and judge what they have found. */
import type { Claim, Taking } from "./limiter.ts";

/** A limit as it was found. */
export interface Look {
  claim: Claim;
  /** Milliseconds until there is room: 0 at once, `Infinity` never. */
  waitMs: number;
}

/** What a request wishes to take. */
export interface Wish {
  id: string;
  claims: readonly Claim[];
  forMs: number;
}

/** Bounds of the wait for a slot, in milliseconds: one may be free at any time. */
const LEAST_SLOT_WAIT_MS = 1_000;
const LONGEST_SLOT_WAIT_MS = 5_000;

/** Whether it may be counted: one cost that is no number would spoil a sum for ever. */
export function isAmount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** @throws {RangeError} where an amount or the time is none, or the id is taken already */
export function checkWish({ id, claims, forMs }: Wish, { known }: { known: boolean }): void {
  if (known) throw new RangeError(`Cannot take for "${id}": it has taken before`);
  if (!(forMs >= 0 && forMs < Infinity && claims.every(({ cost, limit }) => isAmount(cost) && isAmount(limit)))) {
    throw new RangeError(`Cannot take for "${id}": a cost, a limit or its time is no amount`);
  }
}

/** Whether a request is admitted, and what stands or would stand against it. */
export function judge(looks: readonly Look[]): Omit<Taking, "standings"> {
  if (looks.every(({ waitMs }) => waitMs === 0)) return { admitted: true, over: [], retryAfterMs: 0 };
  const over = looks.map(({ claim, waitMs }) => ({ claim, waitMs: toldWait(claim, waitMs) }))
    .filter(({ waitMs }) => waitMs > 0)
    .sort((a, b) => Number(a.claim.reportOnly) - Number(b.claim.reportOnly) || compareWaits(b.waitMs, a.waitMs));
  const refusal = over[0]?.claim.reportOnly === false ? over[0] : undefined;
  return {
    admitted: refusal === undefined,
    over: over.map(({ claim }) => claim),
    retryAfterMs: refusal?.waitMs ?? 0,
  };
}

function toldWait({ unit }: Claim, waitMs: number): number {
  if (unit !== "concurrency" || waitMs === 0 || waitMs === Infinity) return waitMs;
  return Math.min(Math.max(waitMs, LEAST_SLOT_WAIT_MS), LONGEST_SLOT_WAIT_MS);
}

/** Two waits without end are equal. */
function compareWaits(a: number, b: number): number {
  return a === b ? 0 : a - b;
}
