/** UTC days, and sums of entries. */
import { sortSliced } from "../scheduler.ts";
import type { BilledTokens, Ending, Entry, UsageQuery, UsageSum } from "./ledger.ts";

/** Milliseconds per day. */
export const DAY_MS = 86_400_000;

/** Endings that count as failed. */
const FAILED: ReadonlySet<Ending> = new Set<Ending>(["failed", "refused", "lost"]);

/** Classes of tokens, in stored order. */
export const TOKEN_CLASSES = [
  "prompt",
  "input_cache_read",
  "input_cache_write_5m",
  "input_cache_write_1h",
  "completion",
  "reasoning",
] as const satisfies readonly (keyof BilledTokens)[];

/** The counts in stored order. Written out because it runs for every entry, and a loop over the classes is slower. */
export function tokenCounts(tokens: BilledTokens): number[] {
  return [
    tokens.prompt,
    tokens.input_cache_read,
    tokens.input_cache_write_5m,
    tokens.input_cache_write_1h,
    tokens.completion,
    tokens.reasoning,
  ];
}

/** Zero tokens. */
export const NO_TOKENS: Readonly<BilledTokens> = Object.freeze({
  prompt: 0,
  input_cache_read: 0,
  input_cache_write_5m: 0,
  input_cache_write_1h: 0,
  completion: 0,
  reasoning: 0,
});

/** UTC day of a time in Unix milliseconds: days since 1970-01-01. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS);
}

/** Formats a UTC day since 1970-01-01 as `2026-11-21`. @throws {RangeError} for a day outside the calendar */
export function dayName(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** A sum without its names. */
type Figures = Omit<UsageSum, "name" | "thenName">;

/** A period split into whole days and parts of days. */
export interface DaySpan {
  /** Whole days; `until` is exclusive. */
  whole: { from: number; until: number };
  /** Parts of days, in Unix milliseconds: at most the first and the last day. */
  pieces: { day: number; since: number; until: number }[];
}

/** Splits a period in Unix milliseconds into days. */
export function cutSpan({ since, until }: { since: number; until: number }): DaySpan {
  const [first, last] = [dayOf(since), dayOf(until)];
  const isFromStart = since === first * DAY_MS;
  if (since >= until) return { whole: { from: first, until: first }, pieces: [] };
  if (first === last) return { whole: { from: first, until: first }, pieces: [{ day: first, since, until }] };
  return {
    whole: { from: isFromStart ? first : first + 1, until: last },
    pieces: [
      ...(isFromStart ? [] : [{ day: first, since, until: (first + 1) * DAY_MS }]),
      ...(until === last * DAY_MS ? [] : [{ day: last, since: last * DAY_MS, until }]),
    ],
  };
}

/** The figures of one entry. */
export function figuresOf({ ending, tokens, images, cost, overrun }: Omit<Entry, "id">): Figures {
  return { requests: 1, failed: FAILED.has(ending) ? 1 : 0, tokens, images, cost, overrun };
}

/** Adds tokens to a sum. Written out because it runs for every entry, and a loop takes four times as long. */
export function addTokens(sum: BilledTokens, tokens: BilledTokens): void {
  sum.prompt += tokens.prompt;
  sum.input_cache_read += tokens.input_cache_read;
  sum.input_cache_write_5m += tokens.input_cache_write_5m;
  sum.input_cache_write_1h += tokens.input_cache_write_1h;
  sum.completion += tokens.completion;
  sum.reasoning += tokens.reasoning;
}

/** Adds figures to a sum. */
export function addFigures(sum: Figures, { requests, failed, tokens, images, cost, overrun }: Figures): void {
  sum.requests += requests;
  sum.failed += failed;
  addTokens(sum.tokens, tokens);
  sum.images += images;
  sum.cost += cost;
  sum.overrun += overrun;
}

/** Returns whether a query must read single entries: sums per day have neither users nor tags. */
export function needsEntries({ by, thenBy, only = {} }: Pick<UsageQuery, "by" | "thenBy" | "only">): boolean {
  return [by, thenBy].some((each) => each === "user" || each === "tag") || only.user !== undefined ||
    only.tag !== undefined;
}

/** Sums of figures by one or two names. */
export class Sums {
  readonly #sums = new Map<string, UsageSum>();

  /** Adds figures to the sum of these names. */
  add({ name, thenName }: Pick<UsageSum, "name" | "thenName">, figures: Figures): void {
    const both = thenName === undefined ? name : `${name}\n${thenName}`;
    const sum = this.#sums.get(both);
    if (sum !== undefined) return addFigures(sum, figures);
    const { requests, failed, tokens, images, cost, overrun } = figures;
    const names = { name, ...(thenName !== undefined && { thenName }) };
    this.#sums.set(both, { ...names, requests, failed, tokens: { ...tokens }, images, cost, overrun });
  }

  /** All sums, ordered by name. Sorted in slices, since there may be one per key. */
  async list(): Promise<UsageSum[]> {
    return await sortSliced([...this.#sums.values()], byName);
  }
}

/** Compares sums by their names. */
export function byName(one: Pick<UsageSum, "name" | "thenName">, other: Pick<UsageSum, "name" | "thenName">): number {
  return compareTexts(one.name, other.name) || compareTexts(one.thenName ?? "", other.thenName ?? "");
}

function compareTexts(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
