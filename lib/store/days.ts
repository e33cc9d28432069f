/** UTC days, and sums of entries. */
import { sortSliced } from "../scheduler.ts";
import type { BilledTokens, Ending, Entry, UsageBy, UsageQuery, UsageSum } from "./ledger.ts";

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
  return stepOf(at, DAY_MS);
}

/** The step of this length that a time in Unix milliseconds is in: steps since 1970-01-01. */
export function stepOf(at: number, stepMs: number): number {
  return Math.floor(at / stepMs);
}

/** Formats a UTC day since 1970-01-01 as `2026-11-21`. @throws {RangeError} for a day outside the calendar */
export function dayName(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** Groupings by time: their lengths in milliseconds, and the ends of their names in an ISO 8601 text. */
export const TIME_STEPS = {
  day: { ms: DAY_MS, end: "2026-11-21".length },
  hour: { ms: 3_600_000, end: "2026-11-21T09".length },
  minute: { ms: 60_000, end: "2026-11-21T09:13".length },
} as const satisfies Partial<Record<UsageBy, unknown>>;

/** Returns true for a grouping by time. */
function isTimeStep(by: UsageBy | undefined): by is keyof typeof TIME_STEPS {
  return by === "day" || by === "hour" || by === "minute";
}

/** The name of a sum, from a column of the store: that of a time step has the number of the step since 1970-01-01. */
export function sumName(by: UsageBy, value: unknown): string {
  if (!isTimeStep(by)) return String(value);
  const { ms, end } = TIME_STEPS[by];
  return new Date(Number(value) * ms).toISOString().slice(0, end);
}

/** A sum without its names and what prompt caches saved. */
type Figures = Omit<UsageSum, "name" | "thenName" | "saved">;

/** A period split into whole steps, which are days or hours since 1970-01-01, and parts of steps. */
export interface CutSpan {
  /** Whole steps; `until` is exclusive. */
  steps: { from: number; until: number };
  /** Parts of steps, in Unix milliseconds: at most the first and the last step. */
  pieces: { step: number; since: number; until: number }[];
}

/** Splits a period in Unix milliseconds into steps of this length. */
export function cutSpan({ since, until }: { since: number; until: number }, stepMs: number): CutSpan {
  const [first, last] = [stepOf(since, stepMs), stepOf(until, stepMs)];
  const isFromStart = since === first * stepMs;
  if (since >= until) return { steps: { from: first, until: first }, pieces: [] };
  if (first === last) return { steps: { from: first, until: first }, pieces: [{ step: first, since, until }] };
  return {
    steps: { from: isFromStart ? first : first + 1, until: last },
    pieces: [
      ...(isFromStart ? [] : [{ step: first, since, until: (first + 1) * stepMs }]),
      ...(until === last * stepMs ? [] : [{ step: last, since: last * stepMs, until }]),
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

/** Groupings of the sums per day, and those that each kind of sums has. */
const OF_DAYS: readonly (UsageBy | undefined)[] = ["key", "group", "model", "day", undefined];
const OF_KIND: Readonly<Record<SumKind, readonly (UsageBy | undefined)[]>> = {
  upstreams: [...OF_DAYS, "upstream"],
  hours: [...OF_DAYS, "upstream", "hour"],
  users: [...OF_DAYS, "user", "tag"],
};

/**
 * Kinds of sums: per day with upstreams and price sheets, the same per hour of the last two days, and per day with end users
 * and tags.
 */
export type SumKind = "upstreams" | "hours" | "users";

/**
 * The sums that answer a query; `undefined`: only single entries do. Those of one end user are few and have an
 * index.
 */
export function sumKindOf({ by, thenBy, only = {} }: Pick<UsageQuery, "by" | "thenBy" | "only">): SumKind | undefined {
  if (only.user !== undefined) return undefined;
  const kinds: readonly SumKind[] = only.tag === undefined ? ["upstreams", "hours", "users"] : ["users"];
  return kinds.find((kind) => OF_KIND[kind].includes(by) && OF_KIND[kind].includes(thenBy));
}

/** Returns whether a query needs single entries of days whose entries were pruned: only some sums are kept for good. */
export function needsEntries({ by, thenBy, only = {} }: Pick<UsageQuery, "by" | "thenBy" | "only">): boolean {
  return !OF_DAYS.includes(by) || !OF_DAYS.includes(thenBy) || only.user !== undefined || only.tag !== undefined;
}

/** Sums of figures by one or two names. */
export class Sums {
  readonly #sums = new Map<string, UsageSum>();

  /** Adds figures to the sum of these names. */
  add({ name, thenName }: Pick<UsageSum, "name" | "thenName">, figures: Omit<UsageSum, "name" | "thenName">): void {
    const both = thenName === undefined ? name : `${name}\n${thenName}`;
    const sum = this.#sums.get(both);
    if (sum !== undefined) {
      addFigures(sum, figures);
      sum.saved += figures.saved;
      return;
    }
    const { requests, failed, tokens, images, cost, overrun, saved } = figures;
    const names = { name, ...(thenName !== undefined && { thenName }) };
    this.#sums.set(both, { ...names, requests, failed, tokens: { ...tokens }, images, cost, overrun, saved });
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
