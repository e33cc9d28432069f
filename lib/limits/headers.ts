/** What a client is told of its limits: headers on every response, and the error where there is no room. */
import { GatewayError } from "../errors.ts";
import { limitOwnerOf } from "./limit_requests.ts";
import type { LimitDecision, LimitRequest, LimitStatus, LimitUnit } from "./limiter.ts";

/** Units that clients know headers for. */
const SHOWN_UNITS = ["requests", "tokens"] as const satisfies readonly LimitUnit[];

/** Whose words a client knows: OpenAI's, or Anthropic's. */
export type LimitHeaderStyle = "openai" | "anthropic";

/** Names of the headers: the limit, what is left of it, and when it is whole again. */
const NAMES = {
  openai: {
    requests: ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"],
    tokens: ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"],
  },
  anthropic: {
    requests: [
      "anthropic-ratelimit-requests-limit",
      "anthropic-ratelimit-requests-remaining",
      "anthropic-ratelimit-requests-reset",
    ],
    tokens: [
      "anthropic-ratelimit-tokens-limit",
      "anthropic-ratelimit-tokens-remaining",
      "anthropic-ratelimit-tokens-reset",
    ],
  },
} as const;

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
 * Headers about limits, in the words that a client knows. Of several limits of a unit the one with the least left is shown;
 * report-only ones are not. Empty where no limit applies.
 * @param now Unix time in milliseconds: Anthropic's clients are told moments, and OpenAI's times
 */
export function writeLimitHeaders(
  statuses: readonly LimitStatus[],
  { now, words }: { now: () => number; words: LimitHeaderStyle },
): [name: string, value: string][] {
  const headers: [string, string][] = [];
  for (const unit of SHOWN_UNITS) {
    const tightest = tightestOf(statuses, unit);
    if (tightest === undefined) continue;
    const { limitRequest: { limit }, remaining, resetMs } = tightest;
    const names = NAMES[words][unit];
    headers.push(
      [names[0], `${limit}`],
      [names[1], `${remaining}`],
      [names[2], words === "openai" ? writeDuration(resetMs) : writeMoment(now() + resetMs)],
    );
  }
  return headers;
}

/** The limit with the least left, then the smallest. */
function tightestOf(statuses: readonly LimitStatus[], unit: LimitUnit): LimitStatus | undefined {
  let tightest: LimitStatus | undefined;
  for (const status of statuses) {
    const { limitRequest, remaining } = status;
    if (limitRequest.unit !== unit || limitRequest.reportOnly) continue;
    const isTighter = tightest === undefined || remaining < tightest.remaining ||
      (remaining === tightest.remaining && limitRequest.limit < tightest.limitRequest.limit);
    if (isTighter) tightest = status;
  }
  return tightest;
}

/**
 * The error for a request that was not admitted. It names the limit with the longest wait. Where the request takes more
 * than a whole limit it is final: no wait helps.
 */
export function createLimitError({ over, retryAfterMs }: Pick<LimitDecision, "over" | "retryAfterMs">): GatewayError {
  const limitRequest = over.find(({ reportOnly }) => !reportOnly);
  if (limitRequest === undefined) throw new RangeError("Cannot say why a request was refused: no limit refuses it");
  const code = CODES[limitRequest.unit];
  const [owner, size] = [describeOwner(limitRequest), `${limitRequest.limit} ${MEASURES[limitRequest.unit]}`];
  if (retryAfterMs === Infinity) {
    return new GatewayError(
      "limited",
      `Cannot take this request: it needs ${limitRequest.cost} ${limitRequest.unit}, and ${owner} is limited to ${size}`,
      { code, final: true },
    );
  }
  // Codex and others look for these words, and for seconds, in the text.
  const wait = `Please try again in ${writeSeconds(retryAfterMs)}`;
  return new GatewayError("limited", `Cannot take this request now: ${owner} is limited to ${size}. ${wait}`, {
    code,
    retryAfterMs,
  });
}

/** A client has one key and need not know its id. */
function describeOwner(limitRequest: LimitRequest): string {
  const { type, id } = limitOwnerOf(limitRequest);
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
