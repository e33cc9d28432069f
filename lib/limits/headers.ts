/** What a client is told of its limits: headers on every response, and the error where there is no room. */
import { GatewayError } from "../errors.ts";
import { ownerOf } from "./claims.ts";
import type { Claim, LimitUnit, Standing, Taking } from "./limiter.ts";

/** Units that clients know headers for. */
const SHOWN_UNITS = ["requests", "tokens"] as const satisfies readonly LimitUnit[];

/** Codes of the errors by unit. Each protocol writes its own words for them. */
const CODES: Readonly<Record<LimitUnit, string>> = {
  requests: "rate_limit_requests",
  tokens: "rate_limit_tokens",
  concurrency: "concurrency_limit",
};

/** What a limit is a number of. */
const MEASURES: Readonly<Record<LimitUnit, string>> = {
  requests: "requests per minute",
  tokens: "tokens per minute",
  concurrency: "requests at one time",
};

/**
 * Headers about limits, in the words of both families of clients. Of several limits of a unit the one with the least left
 * is shown; report-only ones are not. Empty where no limit applies.
 * @param now Unix time in milliseconds
 */
export function limitHeaders(standings: readonly Standing[], now: number): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const unit of SHOWN_UNITS) {
    const tightest = standings.filter(({ claim }) => claim.unit === unit && !claim.reportOnly)
      .sort((a, b) => a.remaining - b.remaining || a.claim.limit - b.claim.limit)[0];
    if (tightest === undefined) continue;
    const { claim: { limit }, remaining, resetMs } = tightest;
    headers[`x-ratelimit-limit-${unit}`] = String(limit);
    headers[`x-ratelimit-remaining-${unit}`] = String(remaining);
    headers[`x-ratelimit-reset-${unit}`] = writeDuration(resetMs);
    headers[`anthropic-ratelimit-${unit}-limit`] = String(limit);
    headers[`anthropic-ratelimit-${unit}-remaining`] = String(remaining);
    headers[`anthropic-ratelimit-${unit}-reset`] = writeMoment(now + resetMs);
  }
  return headers;
}

/**
 * The error for a request that was not admitted, with the headers about limits. It names the limit with the longest wait.
 * Where the request takes more than a whole limit it is final: no wait helps.
 * @param now Unix time in milliseconds
 */
export function limitError({ over, standings, retryAfterMs }: Taking, now: number): GatewayError {
  const claim = over.find(({ reportOnly }) => !reportOnly);
  if (claim === undefined) throw new RangeError("Cannot say why a request was refused: no limit refuses it");
  const common = { code: CODES[claim.unit], headers: limitHeaders(standings, now) };
  const [owner, size] = [describeOwner(claim), `${claim.limit} ${MEASURES[claim.unit]}`];
  if (retryAfterMs === Infinity) {
    return new GatewayError(
      "limited",
      `Cannot take this request: it needs ${claim.cost} ${claim.unit}, and ${owner} is limited to ${size}`,
      { ...common, final: true },
    );
  }
  // Codex and others look for these words, and for seconds, in the text.
  const wait = `Please try again in ${writeSeconds(retryAfterMs)}`;
  return new GatewayError("limited", `Cannot take this request now: ${owner} is limited to ${size}. ${wait}`, {
    ...common,
    retryAfterMs,
  });
}

/** A client has one key and need not know its id. */
function describeOwner(claim: Claim): string {
  const { type, id } = ownerOf(claim);
  return type === "key" ? "this API key" : `${type} "${id}"`;
}

/** A time as OpenAI writes it: `0s`, `12ms`, `1s`, `6m0s`. */
function writeDuration(ms: number): string {
  const whole = Math.ceil(ms);
  if (whole > 0 && whole < 1000) return `${whole}ms`;
  const minutes = Math.floor(whole / 60_000);
  const seconds = writeSeconds(whole % 60_000);
  if (minutes === 0) return seconds;
  return minutes < 60 ? `${minutes}m${seconds}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}

function writeSeconds(ms: number): string {
  return `${Math.ceil(ms) / 1000}s`;
}

/** A moment to the second, as RFC 3339 has it; never before it. */
function writeMoment(at: number): string {
  return new Date(Math.ceil(at / 1000) * 1000).toISOString().replace(".000Z", "Z");
}
