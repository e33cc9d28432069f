/** The stretch of time that a bill is asked for. */
import { parseDuration, parseMoment } from "../../cli/duration.ts";
import { DAY_MS } from "../../store/days.ts";

/** From one moment up to, not including, another; Unix milliseconds. */
export interface Period {
  since: number;
  until: number;
}

/**
 * Reads the ends of a period: spans such as `7d` count back from now, days such as `2026-11-01` begin at midnight UTC.
 * Without `since` it begins with the present month, without `until` it ends with the present day, both by UTC.
 * @throws {RangeError} for any other text, and where the end is not after the beginning
 */
export function readPeriod(typed: { since?: string; until?: string }, now: number): Period {
  const since = typed.since === undefined ? startOfMonth(now) : readPast(typed.since, now);
  const until = typed.until === undefined ? startOfDay(now) + DAY_MS : readPast(typed.until, now);
  if (until > since) return { since, until };
  throw new RangeError(
    `Cannot sum up: the period ends at ${new Date(until).toISOString()}, but begins at ${
      new Date(since).toISOString()
    }`,
  );
}

function readPast(text: string, now: number): number {
  return /^\d+[a-z]$/.test(text) ? now - parseDuration(text) : parseMoment(text, now);
}

function startOfDay(at: number): number {
  return at - at % DAY_MS;
}

function startOfMonth(at: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}
