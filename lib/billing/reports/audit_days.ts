/** The part of the audit that compares the sums per day with the entries. */
import type { DaySum, LedgerStore } from "../../store/ledger.ts";
import { formatUsd } from "../money.ts";
import type { AuditCounts, Difference } from "./schemas.ts";
import type { Comparison } from "./audit_walk.ts";
import { runSliced } from "../../scheduler.ts";
import { DAY_MS } from "../../store/days.ts";
import { emptySum, isSame, isWithin, nameOfDaySum } from "./day_sums.ts";

/** Sums read at a time, plus those of the rest of their day. */
const PAGE = 1000;

/** Sums compared between two checks of the clock: one day has as many as there are keys. */
const SUMS_AT_ONCE = 64;

/** Before every other day. */
const NO_DAY = Number.MIN_SAFE_INTEGER;

/** Counts of compared sums. `alone`: of days with pruned entries, which only the remaining entries are compared with. */
type DayCounts = Pick<AuditCounts, "day_sums" | "day_sums_in_motion" | "day_sums_alone">;

/** No sum compared. */
export const NO_DAYS: DayCounts = { day_sums: 0, day_sums_in_motion: 0, day_sums_alone: 0 };

/** The sums of some whole days. */
interface Page {
  sums: SumsByName;
  /** The last of the days; infinite for the last page. */
  until: number;
}

type SumsByName = ReadonlyMap<string, DaySum>;

/** Sums read before and after the newest entries, and sums computed from the entries. */
type Readings<What = DaySum> = Record<"before" | "after" | "made", What>;

/**
 * Compares the sums per day with the entries. A ledger in use grows during the audit, so its sums are read before and
 * after the newest entries: the computed sum must be at least the former and at most the latter. For sums that do not
 * change, that is equality. For days with pruned entries, the computed sum must be at most the stored one.
 */
export async function checkDays(ledger: LedgerStore, { walk, findings, turn }: Comparison): Promise<DayCounts> {
  const counts = { ...NO_DAYS };
  const goneDay = walk.start.day;
  let isShort = goneDay < 0;

  function compare(sums: Readings): void {
    const { before, after, made } = sums;
    const { day } = made;
    const isAlone = day <= goneDay;
    if (isAlone) counts.day_sums_alone++;
    else counts.day_sums++;
    if (!isAlone && !isSame(before, after)) counts.day_sums_in_motion++;
    if (day === goneDay && !isSame(made, after)) isShort = true;
    if (!isWithin(made, after) || (!isAlone && !isWithin(before, made))) findings.add(differs(sums));
  }

  function* compareAll({ before, after, made }: Readings<SumsByName>, until: number): Generator<void, void> {
    let count = 0;
    for (const these of [made, before, after]) {
      for (const [name, known] of these) {
        if (++count % SUMS_AT_ONCE === 0) yield;
        const isDone = these !== made && (made.has(name) || these === after && before.has(name));
        if (isDone || known.day > until) continue;
        const nothing = emptySum(known);
        compare({
          before: before.get(name) ?? nothing,
          after: after.get(name) ?? nothing,
          made: made.get(name) ?? nothing,
        });
      }
    }
  }

  for (let since = NO_DAY; since < Infinity;) {
    const before = await readPage(ledger, since);
    await walk.toEnd(ledger, turn);
    const after = await readPage(ledger, since);
    const until = Math.min(before.until, after.until);
    const made = await runSliced(byName(walk.sums.within(since, until)));
    await runSliced(compareAll({ before: before.sums, after: after.sums, made }, until));
    since = until + 1;
    await turn();
  }
  if (!isShort) {
    findings.add({ kind: "start", message: `entries of ${dateOf(goneDay)} are marked as pruned, but none is missing` });
  }
  return counts;
}

async function readPage(ledger: LedgerStore, since: number): Promise<Page> {
  const sums = await ledger.days(since, PAGE);
  const until = sums.length < PAGE ? Infinity : sums.at(-1)?.day ?? Infinity;
  return { sums: await runSliced(byName(sums)), until };
}

function* byName(sums: readonly DaySum[]): Generator<void, SumsByName> {
  const named = new Map<string, DaySum>();
  for (const [index, sum] of sums.entries()) {
    if (index % SUMS_AT_ONCE === 0) yield;
    named.set(`${sum.day}\n${nameOfDaySum(sum)}`, sum);
  }
  return named;
}

function differs({ after, made }: Readings): Difference {
  const { day, keyId, group, model } = made;
  const kept = figuresOf(after);
  const differences = figuresOf(made).flatMap(([name, text], index) => {
    const other = kept[index]?.[1];
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

function figuresOf({ requests, failed, tokens, images, cost, overrun }: DaySum): [string, string][] {
  const counts = Object.entries({ requests, failed, ...tokens, images });
  return [
    ...counts.map(([name, count]): [string, string] => [name, String(count)]),
    ["cost", `${formatUsd(cost)} USD`],
    ["overrun", `${formatUsd(overrun)} USD`],
  ];
}
