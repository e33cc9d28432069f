/** Limits of request bodies: of one body, and of all bodies together. */
import type { Config } from "../config.ts";
import { GatewayError } from "../errors.ts";

/** Limits of one request body. */
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

/**
 * Share of the budget that the bodies of one API key may take together, so that no key fills it for the others. A body may
 * take more while it is the only one in memory.
 */
const KEY_SHARE = 3 / 4;

/** Bytes of request bodies in memory, counted over all requests. */
export class BodyBudget {
  #usedBytes = 0;
  /** Keys whose bodies take nothing are not kept. */
  readonly #usedByKey = new Map<string, number>();

  /** Bytes taken and not yet given back. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Starts the reservation of one request. @param keyId absent: no key counts for its body */
  open(keyId?: string): BodyReservation {
    let ownBytes = 0;
    const add = (bytes: number) => {
      ownBytes += bytes;
      this.#usedBytes += bytes;
      if (keyId === undefined) return;
      const ofKey = (this.#usedByKey.get(keyId) ?? 0) + bytes;
      if (ofKey > 0) this.#usedByKey.set(keyId, ofKey);
      else this.#usedByKey.delete(keyId);
    };
    return {
      reserve: (bytes, limitBytes) => {
        if (this.#usedBytes + bytes > limitBytes) throw noRoom("too many bytes are being handled");
        const ofKey = keyId === undefined ? 0 : (this.#usedByKey.get(keyId) ?? 0) + bytes;
        const isAlone = this.#usedBytes === ownBytes;
        if (ofKey > limitBytes * KEY_SHARE && !isAlone) {
          throw noRoom("too many bytes of this API key are being handled");
        }
        add(bytes);
      },
      release: (bytes) => add(-bytes),
    };
  }
}

/** Bytes of one request's body in the budget. */
export interface BodyReservation {
  /** Takes bytes. @throws {GatewayError} `limited` where the limit, or the share of its key, leaves too few */
  reserve(bytes: number, limitBytes: number): void;
  /** Gives bytes back. */
  release(bytes: number): void;
}

function noRoom(reason: string): GatewayError {
  return new GatewayError("limited", `Cannot take another request body now: ${reason}`, {
    retryAfterMs: BUDGET_RETRY_MS,
  });
}
