/** The part of the audit that compares the sums per day with the entries. */
import type { DaySum, KeptEntry, LedgerStore } from "../../store/ledger.ts";
import { formatUsd } from "../money.ts";
import type { AuditCounts, Difference } from "./schemas.ts";
import type { Comparison } from "./audit_walk.ts";
import { isPrunedDay } from "./kept_entries.ts";
import { runSliced } from "../../scheduler.ts";
import { addFigures, DAY_MS, dayOf, figuresOf, noFigures, TOKEN_CLASSES } from "../../store/days.ts";

/** Sums that are read at a time; a page also has the other sums of its last day. */
const PAGE_SUMS = 1000;

/** Sums that are compared between two checks of the clock: a day has at least one for each key in use. */
const SUMS_PER_CHECK = 64;

const BEFORE_ALL_DAYS = Number.MIN_SAFE_INTEGER;

/**
 * Numbers of compared sums. `in_motion`: sums that grew during the comparison. `alone`: sums of days with pruned
 * entries, which can only be compared with the remaining entries.
 */
type DayCounts = Pick<AuditCounts, "day_sums" | "day_sums_in_motion" | "day_sums_alone">;

/** The numbers if nothing was compared. */
export const NO_DAYS: DayCounts = { day_sums: 0, day_sums_in_motion: 0, day_sums_alone: 0 };

/** The members that identify a daily sum. */
type SumKey = Pick<DaySum, "day" | "keyId" | "group" | "model">;

/** Computes sums of entries by day, key, group and model. */
export class DaySums {
  readonly #days = new Map<number, Map<string, DaySum>>();

  add(entry: KeptEntry): void {
    addFigures(this.#sumOf(entry), figuresOf(entry));
  }

  /** Returns the sums from one day to another, both included. */
  within(first: number, last: number): DaySum[] {
    return [...this.#days].flatMap(([day, sums]) => first <= day && day <= last ? [...sums.values()] : []);
  }

  #sumOf({ at, keyId, group, model }: KeptEntry): DaySum {
    const day = dayOf(at);
    let sums = this.#days.get(day);
    if (sums === undefined) this.#days.set(day, sums = new Map());
    const name = nameOfDaySum({ keyId, group, model });
    let sum = sums.get(name);
    if (sum === undefined) sums.set(name, sum = emptySum({ day, keyId, group, model }));
    return sum;
  }
}

/** All sums of some successive days. */
interface Page {
  sums: SumsByName;
  /** The last of the days; `Infinity` for the last page. */
  until: number;
}

type SumsByName = ReadonlyMap<string, DaySum>;

/** Stored sums from before and after the newest entries were read, and sums computed from the entries. */
type Readings<Sums = DaySum> = Record<"before" | "after" | "computed", Sums>;

/**
 * Compares the sums per day with the entries. A ledger in use grows during the audit, so its sums are read before and
 * after the newest entries: the computed sum must be at least the former and at most the latter. A sum that does not
 * change must therefore be equal. For days with pruned entries, the computed sum must be at most the stored one.
 */
export async function checkDays(ledger: LedgerStore, { walk, findings, pause }: Comparison): Promise<DayCounts> {
  const counts = { ...NO_DAYS };
  const { day: prunedDay } = walk.start;
  let isEntryMissing = prunedDay < 0;

  function compare(sums: Readings): void {
    const { before, after, computed } = sums;
    const { day } = computed;
    const isPruned = isPrunedDay(walk.start, day);
    if (isPruned) counts.day_sums_alone++;
    else counts.day_sums++;
    if (!isPruned && !isSame(before, after)) counts.day_sums_in_motion++;
    if (day === prunedDay && !isSame(computed, after)) isEntryMissing = true;
    if (!isWithin(computed, after) || (!isPruned && !isWithin(before, computed))) findings.add(differenceOf(sums));
  }

  function* compareAll({ before, after, computed }: Readings<SumsByName>, until: number): Generator<void, void> {
    let count = 0;
    for (const sums of [computed, before, after]) {
      for (const [name, sum] of sums) {
        if (++count % SUMS_PER_CHECK === 0) yield;
        const isCompared = sums !== computed && (computed.has(name) || sums === after && before.has(name));
        if (isCompared || sum.day > until) continue;
        const nothing = emptySum(sum);
        compare({
          before: before.get(name) ?? nothing,
          after: after.get(name) ?? nothing,
          computed: computed.get(name) ?? nothing,
        });
      }
    }
  }

  for (let since = BEFORE_ALL_DAYS; since < Infinity;) {
    const before = await readPage(ledger, since);
    await walk.toEnd(ledger, pause);
    const after = await readPage(ledger, since);
    const until = Math.min(before.until, after.until);
    const computed = await runSliced(byName(walk.sums.within(since, until)));
    await runSliced(compareAll({ before: before.sums, after: after.sums, computed }, until));
    since = until + 1;
    await pause();
  }
  if (!isEntryMissing) {
    findings.add({
      kind: "start",
      message: `entries of ${dateOf(prunedDay)} are marked as pruned, but none is missing`,
    });
  }
  return counts;
}

async function readPage(ledger: LedgerStore, since: number): Promise<Page> {
  const sums = await ledger.days(since, PAGE_SUMS);
  const until = sums.length < PAGE_SUMS ? Infinity : sums.at(-1)?.day ?? Infinity;
  return { sums: await runSliced(byName(sums)), until };
}

/** Maps sums by day and name, with pauses. */
function* byName(sums: readonly DaySum[]): Generator<void, SumsByName> {
  const named = new Map<string, DaySum>();
  for (const [index, sum] of sums.entries()) {
    if (index % SUMS_PER_CHECK === 0) yield;
    named.set(`${sum.day}\n${nameOfDaySum(sum)}`, sum);
  }
  return named;
}

function differenceOf({ after, computed }: Readings): Difference {
  const { day, keyId, group, model } = computed;
  const stored = figureTexts(after);
  const differences = figureTexts(computed).flatMap(([name, text], index) => {
    const other = stored[index]?.[1];
    return text === other ? [] : [`${name} is ${other}, the entries add up to ${text}`];
  });
  const label = `${dateOf(day)}, key "${keyId}", group "${group}", model "${model}"`;
  return { kind: "day_sum", message: `${label}: ${differences.join("; ")}` };
}

/** Formats a day as `2026-11-21`; days outside the calendar as their number. */
function dateOf(day: number): string {
  const date = new Date(day * DAY_MS);
  return Number.isNaN(date.getTime()) ? `day ${day}` : date.toISOString().slice(0, 10);
}

function figureTexts({ requests, failed, tokens, images, cost, overrun }: DaySum): [string, string][] {
  const counts = Object.entries({ requests, failed, ...tokens, images });
  return [
    ...counts.map(([name, count]): [string, string] => [name, String(count)]),
    ["cost", `${formatUsd(cost)} USD`],
    ["overrun", `${formatUsd(overrun)} USD`],
  ];
}

/** Returns a name that is unique among the sums of a day. */
function nameOfDaySum({ keyId, group, model }: Omit<SumKey, "day">): string {
  return `${keyId}\n${group}\n${model}`;
}

/** Returns whether no figure of `one` exceeds that of `other`. */
function isWithin(one: DaySum, other: DaySum): boolean {
  return one.requests <= other.requests && one.failed <= other.failed && one.images <= other.images &&
    one.cost <= other.cost && one.overrun <= other.overrun &&
    TOKEN_CLASSES.every((name) => one.tokens[name] <= other.tokens[name]);
}

/** Returns whether all figures are equal. */
function isSame(one: DaySum, other: DaySum): boolean {
  return isWithin(one, other) && isWithin(other, one);
}

/** Returns a sum whose figures are 0. */
function emptySum({ day, keyId, group, model }: SumKey): DaySum {
  return { day, keyId, group, model, ...noFigures() };
}
