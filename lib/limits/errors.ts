/** The error that a client gets when a limit refuses its request. */
import { GatewayError } from "../errors.ts";
import { limitOwnerOf } from "./limit_requests.ts";
import type { LimitDecision, LimitRequest, LimitUnit } from "./limiter.ts";

/** Codes of the errors by unit. Each protocol translates them. */
const CODES: Readonly<Record<LimitUnit, string>> = {
  requests: "rate_limit_requests",
  tokens: "rate_limit_tokens",
  concurrency: "concurrency_limit",
};

const UNIT_TEXTS: Readonly<Record<LimitUnit, string>> = {
  requests: "requests per minute",
  tokens: "tokens per minute",
  concurrency: "requests at one time",
};

/**
 * Makes the error for a request that was not admitted. It names the limit with the longest wait. The error is final where
 * the request takes more than a whole limit, as no wait helps.
 */
export function createLimitError({ over, retryAfterMs }: Pick<LimitDecision, "over" | "retryAfterMs">): GatewayError {
  const refusing = over.find(({ reportOnly }) => !reportOnly);
  if (refusing === undefined) throw new RangeError("Cannot explain why a request was refused: no limit refuses it");
  const { unit, cost, limit } = refusing;
  const code = CODES[unit];
  const rule = `${describeOwner(refusing)} is limited to ${limit} ${UNIT_TEXTS[unit]}`;
  if (retryAfterMs === Infinity) {
    return new GatewayError("limited", `Cannot take this request: it needs ${cost} ${unit}, and ${rule}`, {
      code,
      final: true,
    });
  }
  // Codex and other clients look for these words, and for seconds, in the text.
  const wait = `Please try again in ${Math.ceil(retryAfterMs) / 1000}s`;
  return new GatewayError("limited", `Cannot take this request now: ${rule}. ${wait}`, { code, retryAfterMs });
}

/** A client has one key and need not know its id. */
function describeOwner(limitRequest: LimitRequest): string {
  const { type, id } = limitOwnerOf(limitRequest);
  return type === "key" ? "this API key" : `${type} "${id}"`;
}
