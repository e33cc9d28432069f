/** The period of a bill. */
import { parseDuration, parseMoment } from "../../cli/duration.ts";
import { DAY_MS } from "../../store/days.ts";

/** A period; `until` is exclusive; Unix milliseconds. */
export interface Period {
  since: number;
  until: number;
}

/** Texts that define a period. */
export interface PeriodTexts {
  since?: string;
  until?: string;
  /** `today`, `yesterday`, `last-month`, or a month such as `2026-10`; excludes the other two. */
  period?: string;
}

/**
 * Reads a period: spans such as `7d` count back from now, days such as `2026-11-01` begin at midnight UTC. `since`
 * defaults to the start of the current month, `until` to the end of the current day (UTC).
 * @throws {RangeError} for any other text, and if the end is not after the start
 */
export function readPeriod(typed: PeriodTexts, now: number): Period {
  if (typed.period !== undefined) {
    if (typed.since === undefined && typed.until === undefined) return readNamedPeriod(typed.period, now);
    throw new RangeError("Cannot use a named period together with a beginning or an end");
  }
  const since = typed.since === undefined ? startOfMonth(now) : readPast(typed.since, now);
  const until = typed.until === undefined ? startOfDay(now) + DAY_MS : readPast(typed.until, now);
  if (until > since) return { since, until };
  throw new RangeError(
    `Cannot sum up: the period ends at ${new Date(until).toISOString()}, but begins at ${
      new Date(since).toISOString()
    }`,
  );
}

/** Reads a whole day or month (UTC), which may lie partly in the future. @throws {RangeError} for an unknown name */
function readNamedPeriod(name: string, now: number): Period {
  const today = startOfDay(now);
  if (name === "today") return { since: today, until: today + DAY_MS };
  if (name === "yesterday") return { since: today - DAY_MS, until: today };
  if (name === "last-month") return { since: startOfMonth(startOfMonth(now) - 1), until: startOfMonth(now) };
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(name) ?? [];
  if (year === undefined || month === undefined) {
    throw new RangeError(
      `Cannot read the period "${name}": expected today, yesterday, last-month, or a month such as 2026-10`,
    );
  }
  const since = Date.parse(`${year}-${month}-01`);
  // Longer than any month, and shorter than two.
  return { since, until: startOfMonth(since + 31 * DAY_MS) };
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
