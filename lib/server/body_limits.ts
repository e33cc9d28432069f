/** How much of request bodies is allowed, one by one and all together. */
import type { Config } from "../config.ts";
import { GatewayError } from "../errors.ts";

/** What a request body may cost at most. */
export interface BodyLimits {
  /** Bytes of one JSON body. */
  jsonBytes: number;
  /** Memory of all request bodies that are being handled in bytes. */
  budgetBytes: number;
  /** Longest time without a byte. */
  gapMs: number;
  /** Time before the rate is looked at. */
  graceMs: number;
  /** Lowest mean rate after the grace time. */
  minBytesPerSecond: number;
  /** Longest time for the whole body. */
  totalMs: number;
}

/**
 * Memory that a JSON body takes while it is read and its tokens are counted, in times of its size: its bytes, its text, its
 * values. Measured with bodies of 32 MB, which took 100 to 130 MB.
 */
export const JSON_MEMORY_FACTOR = 4;

/** The operator's limits. */
export function bodyLimits({ limits }: Config): BodyLimits {
  return {
    jsonBytes: limits.json_body_bytes,
    budgetBytes: limits.body_budget_bytes,
    gapMs: limits.body_gap_ms,
    graceMs: limits.body_grace_ms,
    minBytesPerSecond: limits.body_min_bytes_per_second,
    totalMs: limits.body_total_ms,
  };
}

/** When to try again after the memory for bodies was used up, in milliseconds. */
const BUDGET_RETRY_MS = 1_000;

/** Bytes of request bodies in memory, counted over all requests. */
export class BodyBudget {
  #usedBytes = 0;

  /** Bytes taken and not yet given back. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Takes bytes. @throws {GatewayError} `limited` where the limit leaves too few */
  reserve(bytes: number, limitBytes: number): void {
    if (this.#usedBytes + bytes > limitBytes) {
      throw new GatewayError("limited", "Cannot take another request body now: too many bytes are being handled", {
        retryAfterMs: BUDGET_RETRY_MS,
      });
    }
    this.#usedBytes += bytes;
  }

  /** Gives bytes back. */
  release(bytes: number): void {
    this.#usedBytes -= bytes;
  }
}
