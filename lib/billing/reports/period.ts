/** Reads the period of a report, which is given as times, spans back from now, or a name. */
import { parseDuration, parseMoment } from "../../store/times.ts";
import { DAY_MS, dayOf } from "../../store/days.ts";
import { periodStart } from "../budgets.ts";

/** A period in Unix milliseconds; `until` is exclusive. */
export interface Period {
  since: number;
  until: number;
}

/** Texts that define a period. */
export interface PeriodTexts {
  since?: string;
  until?: string;
  /** `today`, `yesterday`, `last-month`, or a month such as `2026-10`; only without the other two. */
  period?: string;
}

/**
 * Reads a period. A span such as `7d` counts back from `now` (Unix milliseconds), a day such as `2026-11-01` means its
 * midnight (UTC). `since` defaults to the start of the current month, `until` to the end of the current day (UTC).
 * @throws {RangeError} for any other text, and if the end is not after the start
 */
export function readPeriod(texts: PeriodTexts, now: number): Period {
  if (texts.period !== undefined) {
    if (texts.since === undefined && texts.until === undefined) return readNamedPeriod(texts.period, now);
    throw new RangeError("Cannot use a named period together with a beginning or an end");
  }
  const since = texts.since === undefined ? startOfMonth(now) : readPast(texts.since, now);
  const until = texts.until === undefined ? (dayOf(now) + 1) * DAY_MS : readPast(texts.until, now);
  if (until > since) return { since, until };
  throw new RangeError(
    `Cannot sum up: the period ends at ${new Date(until).toISOString()}, but begins at ${
      new Date(since).toISOString()
    }`,
  );
}

/** Reads a whole day or month (UTC), which may lie partly in the future. @throws {RangeError} for an unknown name */
function readNamedPeriod(name: string, now: number): Period {
  const today = dayOf(now) * DAY_MS;
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
  // 31 days after the first of any month is a day of the next month.
  return { since, until: startOfMonth(since + 31 * DAY_MS) };
}

/** Reads a span back from now, or a moment. */
function readPast(text: string, now: number): number {
  return /^\d+[a-z]$/.test(text) ? now - parseDuration(text) : parseMoment(text, now);
}

function startOfMonth(at: number): number {
  return periodStart("month", at) * DAY_MS;
}
