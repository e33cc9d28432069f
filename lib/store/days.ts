/** Computes with UTC days and other steps of time, and adds up the figures of entries. */
import { compareValues } from "../compare_values.ts";
import { sortSliced } from "../scheduler.ts";
import type { BilledTokens, Ending, Entry, SumFigures, UsageBy, UsageQuery, UsageSum } from "./ledger.ts";

/** Milliseconds per day. */
export const DAY_MS = 86_400_000;

/** Endings that count as failed. */
export const FAILED_ENDINGS: ReadonlySet<Ending> = new Set<Ending>(["failed", "refused", "lost"]);

/** SQL condition for entries with one of these endings. */
export const FAILED_SQL: string = `ending IN (${[...FAILED_ENDINGS].map((ending) => `'${ending}'`).join(", ")})`;

/** Classes of tokens, in the order of the columns. */
export const TOKEN_CLASSES = [
  "prompt",
  "input_cache_read",
  "input_cache_write_5m",
  "input_cache_write_1h",
  "completion",
  "reasoning",
] as const satisfies readonly (keyof BilledTokens)[];

/** Returns the counts in the order of the columns. */
export function tokenCounts(tokens: BilledTokens): number[] {
  return TOKEN_CLASSES.map((name) => tokens[name]);
}

/** No tokens of any class. */
export const NO_TOKENS: Readonly<BilledTokens> = Object.freeze({
  prompt: 0,
  input_cache_read: 0,
  input_cache_write_5m: 0,
  input_cache_write_1h: 0,
  completion: 0,
  reasoning: 0,
});

/** Returns the UTC day of a time in Unix milliseconds, in days since 1970-01-01. */
export function dayOf(at: number): number {
  return stepOf(at, DAY_MS);
}

/** Returns the step that contains a time in Unix milliseconds, in steps of this length since 1970-01-01. */
export function stepOf(at: number, stepMs: number): number {
  return Math.floor(at / stepMs);
}

/** Formats a UTC day since 1970-01-01 as `2026-11-21`. @throws {RangeError} for a day outside the calendar */
export function dayName(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** Groupings by time: their lengths in milliseconds, and how much of an ISO 8601 text is their name. */
export const TIME_STEPS = {
  day: { ms: DAY_MS, end: "2026-11-21".length },
  hour: { ms: 3_600_000, end: "2026-11-21T09".length },
  minute: { ms: 60_000, end: "2026-11-21T09:13".length },
} as const satisfies Partial<Record<UsageBy, unknown>>;

function isTimeStep(by: UsageBy | undefined): by is keyof typeof TIME_STEPS {
  return by === "day" || by === "hour" || by === "minute";
}

/**
 * Returns the name of a sum by the value of its column, which for days, hours and minutes is their number since 1970.
 */
export function sumName(by: UsageBy, value: unknown): string {
  if (!isTimeStep(by)) return String(value);
  const { ms, end } = TIME_STEPS[by];
  return new Date(Number(value) * ms).toISOString().slice(0, end);
}

/** Returns figures of nothing. */
export function noFigures(): SumFigures {
  return { requests: 0, failed: 0, tokens: { ...NO_TOKENS }, images: 0, cost: 0n, overrun: 0n };
}

/** A period split into whole steps, which are days or hours since 1970-01-01, and parts of steps. */
export interface CutSpan {
  /** The whole steps; `until` is exclusive. */
  whole: { from: number; until: number };
  /** Parts of the first and the last step, in Unix milliseconds; empty if the period has only whole steps. */
  pieces: { step: number; since: number; until: number }[];
}

/** Splits a period in Unix milliseconds into steps of this length. */
export function cutSpan({ since, until }: { since: number; until: number }, stepMs: number): CutSpan {
  const [first, last] = [stepOf(since, stepMs), stepOf(until, stepMs)];
  const isFromStart = since === first * stepMs;
  if (since >= until) return { whole: { from: first, until: first }, pieces: [] };
  if (first === last) return { whole: { from: first, until: first }, pieces: [{ step: first, since, until }] };
  return {
    whole: { from: isFromStart ? first : first + 1, until: last },
    pieces: [
      ...(isFromStart ? [] : [{ step: first, since, until: (first + 1) * stepMs }]),
      ...(until === last * stepMs ? [] : [{ step: last, since: last * stepMs, until }]),
    ],
  };
}

/** Returns the figures of one entry. */
export function figuresOf({ ending, tokens, images, cost, overrun }: Omit<Entry, "id">): SumFigures {
  return { requests: 1, failed: FAILED_ENDINGS.has(ending) ? 1 : 0, tokens, images, cost, overrun };
}

/** Adds tokens to a sum. */
export function addTokens(sum: BilledTokens, tokens: BilledTokens): void {
  for (const name of TOKEN_CLASSES) sum[name] += tokens[name];
}

/** Adds figures to a sum. */
export function addFigures(sum: SumFigures, { requests, failed, tokens, images, cost, overrun }: SumFigures): void {
  sum.requests += requests;
  sum.failed += failed;
  addTokens(sum.tokens, tokens);
  sum.images += images;
  sum.cost += cost;
  sum.overrun += overrun;
}

/** Groupings of the sums that are written with the entries, and of each kind of sums that are made later. */
const GROUPINGS_OF_DAYS: readonly (UsageBy | undefined)[] = ["key", "group", "model", "day", undefined];
const GROUPINGS_OF_KIND: Readonly<Record<SumKind, readonly (UsageBy | undefined)[]>> = {
  upstreams: [...GROUPINGS_OF_DAYS, "upstream"],
  hours: [...GROUPINGS_OF_DAYS, "upstream", "hour"],
  users: [...GROUPINGS_OF_DAYS, "user", "tag"],
};

/**
 * Kinds of sums. `upstreams`: per day, with upstreams and price sheets. `hours`: the same per hour, for the last two
 * days. `users`: per day, with end users and tags.
 */
export type SumKind = "upstreams" | "hours" | "users";

/**
 * Returns the kind of sums that a query can be answered from; `undefined` if it needs single entries. Queries for one
 * end user read entries, which are few and have an index.
 */
export function sumKindOf({ by, thenBy, only = {} }: Pick<UsageQuery, "by" | "thenBy" | "only">): SumKind | undefined {
  if (only.user !== undefined) return undefined;
  const kinds: readonly SumKind[] = only.tag === undefined ? ["upstreams", "hours", "users"] : ["users"];
  return kinds.find((kind) => GROUPINGS_OF_KIND[kind].includes(by) && GROUPINGS_OF_KIND[kind].includes(thenBy));
}

/** Returns whether pruned entries are missing from the result of a query: only some sums are kept after pruning. */
export function needsEntries({ by, thenBy, only = {} }: Pick<UsageQuery, "by" | "thenBy" | "only">): boolean {
  return !GROUPINGS_OF_DAYS.includes(by) || !GROUPINGS_OF_DAYS.includes(thenBy) || only.user !== undefined ||
    only.tag !== undefined;
}

/** Collects sums of figures by the one or two names that reports show. */
export class Sums {
  readonly #sums = new Map<string, UsageSum>();

  /** Adds figures to the sums of these values of columns. A value with several tags counts for each of them. */
  addRow(
    { by, thenBy }: Pick<UsageQuery, "by" | "thenBy">,
    [value, thenValue]: readonly unknown[],
    figures: Omit<UsageSum, "name" | "thenName">,
  ): void {
    for (const name of sumNames(by, value)) {
      for (const thenName of thenBy === undefined ? [undefined] : sumNames(thenBy, thenValue)) {
        this.add({ name, ...(thenName !== undefined && { thenName }) }, figures);
      }
    }
  }

  /** Adds figures to the sum of these names. */
  add({ name, thenName }: Pick<UsageSum, "name" | "thenName">, figures: Omit<UsageSum, "name" | "thenName">): void {
    const key = thenName === undefined ? name : `${name}\n${thenName}`;
    const sum = this.#sums.get(key);
    if (sum !== undefined) {
      addFigures(sum, figures);
      sum.saved += figures.saved;
      return;
    }
    const { requests, failed, tokens, images, cost, overrun, saved } = figures;
    const names = { name, ...(thenName !== undefined && { thenName }) };
    this.#sums.set(key, { ...names, requests, failed, tokens: { ...tokens }, images, cost, overrun, saved });
  }

  /** Returns all sums, ordered by name. Sorts with pauses, since there may be a sum for every key. */
  async list(): Promise<UsageSum[]> {
    return await sortSliced([...this.#sums.values()], byName);
  }
}

/** Returns the names of the sums for a value of a column: one, or one for each tag. */
function sumNames(by: UsageBy, value: unknown): string[] {
  return by === "tag" ? tagNames(String(value)) : [sumName(by, value)];
}

/** Returns the tags in a value of the column `tags`; one empty name if it has none. */
function tagNames(tags: string): string[] {
  return tags === "" ? [""] : tags.slice(1, -1).split(",");
}

/** Compares sums by their names. */
export function byName(one: Pick<UsageSum, "name" | "thenName">, other: Pick<UsageSum, "name" | "thenName">): number {
  return compareValues(one.name, other.name) || compareValues(one.thenName ?? "", other.thenName ?? "");
}
