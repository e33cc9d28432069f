/** Days of the bill, and sums over entries. */
import { sortSliced } from "../scheduler.ts";
import type { BilledTokens, Ending, Entry, UsageQuery, UsageSum } from "./ledger.ts";

/** Milliseconds of a day. */
export const DAY_MS = 86_400_000;

/** Endings of requests that count as failed. */
const FAILED: ReadonlySet<Ending> = new Set<Ending>(["failed", "refused", "lost"]);

/** Classes of tokens, in the order that they are kept. */
export const TOKEN_CLASSES = [
  "prompt",
  "input_cache_read",
  "input_cache_write_5m",
  "input_cache_write_1h",
  "completion",
  "reasoning",
] as const satisfies readonly (keyof BilledTokens)[];

/** Their numbers, in that order. By their names: this is done for every entry, and a loop over the classes costs more. */
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

/** Nothing at all. */
export const NO_TOKENS: Readonly<BilledTokens> = Object.freeze({
  prompt: 0,
  input_cache_read: 0,
  input_cache_write_5m: 0,
  input_cache_write_1h: 0,
  completion: 0,
  reasoning: 0,
});

/** The day of a moment in Unix milliseconds: days since 1970-01-01, by UTC. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS);
}

/** Formats a day since 1970-01-01, by UTC, as `2026-11-21`. @throws {RangeError} for a day outside the calendar */
export function dayName(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** The figures of a sum, without its names. */
type Figures = Omit<UsageSum, "name" | "thenName">;

/** A span of time as the days and pieces of days that it is made of. */
export interface DaySpan {
  /** Whole days, from the first one up to, not including, the other. */
  whole: { from: number; until: number };
  /** Pieces of days, in Unix milliseconds: at most the first and the last. */
  pieces: { day: number; since: number; until: number }[];
}

/** Cuts a span of time, in Unix milliseconds, into days. */
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

/** Adds tokens to a sum. By their names: a loop over the classes costs four times as much, for every entry. */
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

/** Returns true if sums must be made of single entries: sums per day have neither users nor tags. */
export function needsEntries({ by, thenBy, only = {} }: Pick<UsageQuery, "by" | "thenBy" | "only">): boolean {
  return [by, thenBy].some((each) => each === "user" || each === "tag") || only.user !== undefined ||
    only.tag !== undefined;
}

/** Sums by one or two names, each made of figures added to it. */
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

  /** All sums, by their names; in slices, as there may be one for each key. */
  async list(): Promise<UsageSum[]> {
    return await sortSliced([...this.#sums.values()], byName);
  }
}

/** The order of sums by their names. */
export function byName(one: Pick<UsageSum, "name" | "thenName">, other: Pick<UsageSum, "name" | "thenName">): number {
  return compareTexts(one.name, other.name) || compareTexts(one.thenName ?? "", other.thenName ?? "");
}

function compareTexts(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
