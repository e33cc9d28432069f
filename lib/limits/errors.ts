/** Creates the error that a client gets if a limit refuses its request. */
import { GatewayError, type LimitRefusal } from "../errors.ts";
import { counted } from "../text.ts";
import { limitOwnerOf } from "./limit_requests.ts";
import type { LimitDecision, LimitRequest, LimitUnit } from "./limiter.ts";

/** Error code for each unit. The protocols translate these codes into their own. */
const CODES: Readonly<Record<LimitUnit, string>> = {
  requests: "rate_limit_requests",
  tokens: "rate_limit_tokens",
  concurrency: "concurrency_limit",
};

/** Describes a limit, such as `1 request per minute`. */
export function limitText(limit: number, unit: LimitUnit): string {
  if (unit === "concurrency") return counted(limit, "concurrent request");
  return `${counted(limit, unit === "tokens" ? "token" : "request")} per minute`;
}

/**
 * Creates the error for a refused request. It names the limit with the longest wait. The error is final if the request
 * needs more than a whole limit, because then no wait helps.
 */
export function createLimitError(
  { exceeded, retryAfterMs, statuses }: Pick<LimitDecision, "exceeded" | "retryAfterMs" | "statuses">,
): GatewayError {
  const refusing = exceeded.find(({ reportOnly }) => !reportOnly);
  if (refusing === undefined) throw new RangeError("Cannot explain why a request was refused: no limit refuses it");
  const { unit, cost, limit } = refusing;
  const code = CODES[unit];
  const { type: scope, id } = limitOwnerOf(refusing);
  const status = statuses.find(({ limitRequest }) => limitRequest.name === refusing.name && limitRequest.unit === unit);
  const facts: LimitRefusal = { scope, id, unit, limit, needed: cost };
  if (status !== undefined) facts.remaining = status.remaining;
  if (retryAfterMs !== Infinity) facts.free_after_ms = Math.ceil(retryAfterMs);
  const refusal = { limit: facts };
  const rule = `${describeOwner(refusing)} is limited to ${limitText(limit, unit)}`;
  if (retryAfterMs === Infinity) {
    const needed = counted(cost, unit === "tokens" ? "token" : "request");
    const text = `This request needs ${needed}, but ${rule}`;
    return new GatewayError("limited", text, { code, final: true, refusal });
  }
  // Codex and other clients search the text for these words and the number of seconds.
  const wait = `Please try again in ${Math.ceil(retryAfterMs) / 1000}s`;
  return new GatewayError("limited", `Rate limit reached: ${rule}. ${wait}`, { code, retryAfterMs, refusal });
}

/** Names the owner of a limit. The id of a key is left out: a client has one key and need not know its id. */
function describeOwner(limitRequest: LimitRequest): string {
  const { type, id } = limitOwnerOf(limitRequest);
  return type === "key" ? "this API key" : `${type} "${id}"`;
}
