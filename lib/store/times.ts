/** Parses durations and times that operators type, and formats times. */
import { DAY_MS } from "./days.ts";

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: DAY_MS };

/** Longest duration: 100 years, in milliseconds. A longer one is probably a typing error. */
const MAX_DURATION_MS = 36_525 * DAY_MS;

/**
 * Parses a duration such as `90s`, `15m`, `24h` or `30d`, in milliseconds.
 * @throws {RangeError} for any other text, and for more than 100 years
 */
export function parseDuration(text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,12})([smhd])$/.exec(text) ?? [];
  const duration = Number(count) * (UNITS[unit] ?? NaN);
  if (duration <= MAX_DURATION_MS) return duration;
  throw new RangeError(`Cannot read the time "${text}": expected a number and s, m, h or d, such as 90s or 30d`);
}

/**
 * Parses a time, as Unix time in milliseconds: a day such as `2027-01-01`, which stands for its midnight UTC, an exact
 * time such as `2027-01-01T12:00:00Z`, or a duration after `now`.
 * @throws {RangeError} for any other text
 */
export function parseMoment(text: string, now: number): number {
  if (/^\d+[a-z]$/.test(text)) return now + parseDuration(text);
  const isWellFormed = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/.test(text);
  const time = isWellFormed ? Date.parse(text) : NaN;
  // `Date.parse` accepts the 31st of February as a day in March.
  const isDay = Number.isFinite(Date.parse(text.slice(0, 10))) &&
    new Date(text.slice(0, 10)).toISOString().slice(0, 10) === text.slice(0, 10);
  // With an offset, the time may be in the year 10000 or -1 by UTC, which RFC 3339 cannot express.
  if (Number.isFinite(time) && isDay && /^\d/.test(new Date(time).toISOString())) return time;
  throw new RangeError(`Cannot read the moment "${text}": expected a span such as 30d, or a day such as 2027-01-01`);
}

/** Formats a Unix time in milliseconds by ISO 8601; `null` if there is none. */
export function isoTime(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString();
}
