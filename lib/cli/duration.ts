/** Spans of time and moments as they are typed. */
import { DAY_MS } from "../store/days.ts";

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: DAY_MS };

/** Longest span: 100 years, in milliseconds. A longer one is a typing error. */
const LONGEST_MS = 36_525 * DAY_MS;

/** Reads `90s`, `15m`, `24h` or `30d`, in milliseconds. @throws {RangeError} for any other text, and past 100 years */
export function parseDuration(text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,12})([smhd])$/.exec(text) ?? [];
  const span = Number(count) * (UNITS[unit] ?? NaN);
  if (span <= LONGEST_MS) return span;
  throw new RangeError(`Cannot read the time "${text}": expected a number and s, m, h or d, such as 90s or 30d`);
}

/**
 * Reads a moment: a day such as `2027-01-01`, which begins at midnight UTC, an exact time such as
 * `2027-01-01T12:00:00Z`, or a span counted from now into the future. In Unix milliseconds.
 * @throws {RangeError} for any other text
 */
export function parseMoment(text: string, now: number): number {
  if (/^\d+[a-z]$/.test(text)) return now + parseDuration(text);
  const isMoment = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/.test(text);
  const moment = isMoment ? Date.parse(text) : NaN;
  // `Date.parse` takes the 31st of February for a day in March.
  const isDay = Number.isFinite(Date.parse(text.slice(0, 10))) &&
    new Date(text.slice(0, 10)).toISOString().slice(0, 10) === text.slice(0, 10);
  // With an offset it may be in the year 10000 or -1 by UTC, which no RFC 3339 date can say.
  if (Number.isFinite(moment) && isDay && /^\d/.test(new Date(moment).toISOString())) return moment;
  throw new RangeError(`Cannot read the moment "${text}": expected a span such as 30d, or a day such as 2027-01-01`);
}
