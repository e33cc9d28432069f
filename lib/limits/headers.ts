/** Creates the response headers about limits, with the names that OpenAI or Anthropic use. */
import type { LimitStatus, LimitUnit } from "./limiter.ts";

/** Units with standard headers. */
const SHOWN_UNITS = ["requests", "tokens"] as const satisfies readonly LimitUnit[];

/** Vendor whose header names the client expects. */
export type LimitHeaderStyle = "openai" | "anthropic";

/** Header names of each unit: limit, remaining, reset. */
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

/** Options of the headers. */
export interface LimitHeaderOptions {
  /** Unix time in milliseconds: Anthropic's headers hold points in time, OpenAI's hold durations. */
  now: () => number;
  /** Vendor whose names are used. */
  style: LimitHeaderStyle;
  /** Milliseconds until a refused request may be retried; absent: it was not refused. */
  refusedMs?: number | undefined;
}

/**
 * Creates the headers: for each unit, those of the limit with the least remaining amount. Report-only limits are left
 * out. The list is empty if no limit applies and none refused the request.
 */
export function writeLimitHeaders(
  statuses: readonly LimitStatus[],
  { now, style, refusedMs }: LimitHeaderOptions,
): [name: string, value: string][] {
  const headers: [string, string][] = [];
  let latestMs: number | undefined;
  for (const unit of SHOWN_UNITS) {
    const tightest = tightestOf(statuses, unit);
    if (tightest === undefined) continue;
    const { limitRequest: { limit }, remaining, resetMs } = tightest;
    const names = NAMES[style][unit];
    latestMs = Math.max(latestMs ?? 0, resetMs);
    headers.push(
      [names[0], `${limit}`],
      [names[1], `${remaining}`],
      [names[2], style === "openai" ? writeDuration(resetMs) : writeTime(now() + resetMs)],
    );
  }
  const unifiedMs = refusedMs ?? latestMs;
  if (style === "anthropic" && unifiedMs !== undefined) {
    headers.push(
      ["anthropic-ratelimit-unified-status", refusedMs === undefined ? "allowed" : "rejected"],
      ["anthropic-ratelimit-unified-reset", `${Math.ceil((now() + unifiedMs) / 1000)}`],
    );
  }
  return headers;
}

/** Finds the limit of a unit with the least remaining amount; of several such limits, the smallest. */
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

/** Formats a duration as OpenAI does: `0s`, `12ms`, `1s`, `6m0s`. */
function writeDuration(ms: number): string {
  const roundedMs = Math.ceil(ms);
  if (roundedMs > 0 && roundedMs < 1000) return `${roundedMs}ms`;
  const minutes = Math.floor(roundedMs / 60_000);
  const seconds = `${(roundedMs % 60_000) / 1000}s`;
  if (minutes === 0) return seconds;
  return minutes < 60 ? `${minutes}m${seconds}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}

/**
 * Formats a time in RFC 3339, rounded up to seconds. (The unified header has Unix seconds, as Claude Code reads it.)
 */
function writeTime(at: number): string {
  return new Date(Math.ceil(at / 1000) * 1000).toISOString().replace(".000Z", "Z");
}
