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
type Readings<What = DaySum> = Record<"before" | "after" | "recomputed", What>;

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
    const { before, after, recomputed } = sums;
    const { day } = recomputed;
    const isAlone = day <= goneDay;
    if (isAlone) counts.day_sums_alone++;
    else counts.day_sums++;
    if (!isAlone && !isSame(before, after)) counts.day_sums_in_motion++;
    if (day === goneDay && !isSame(recomputed, after)) isShort = true;
    if (!isWithin(recomputed, after) || (!isAlone && !isWithin(before, recomputed))) findings.add(differs(sums));
  }

  function* compareAll({ before, after, recomputed }: Readings<SumsByName>, until: number): Generator<void, void> {
    let count = 0;
    for (const sums of [recomputed, before, after]) {
      for (const [name, known] of sums) {
        if (++count % SUMS_AT_ONCE === 0) yield;
        const isDone = sums !== recomputed && (recomputed.has(name) || sums === after && before.has(name));
        if (isDone || known.day > until) continue;
        const emptyDay = emptySum(known);
        compare({
          before: before.get(name) ?? emptyDay,
          after: after.get(name) ?? emptyDay,
          recomputed: recomputed.get(name) ?? emptyDay,
        });
      }
    }
  }

  for (let since = NO_DAY; since < Infinity;) {
    const before = await readPage(ledger, since);
    await walk.toEnd(ledger, turn);
    const after = await readPage(ledger, since);
    const until = Math.min(before.until, after.until);
    const recomputed = await runSliced(byName(walk.sums.within(since, until)));
    await runSliced(compareAll({ before: before.sums, after: after.sums, recomputed }, until));
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
  const sumsByName = new Map<string, DaySum>();
  for (const [index, sum] of sums.entries()) {
    if (index % SUMS_AT_ONCE === 0) yield;
    sumsByName.set(`${sum.day}\n${nameOfDaySum(sum)}`, sum);
  }
  return sumsByName;
}

function differs({ after, recomputed }: Readings): Difference {
  const { day, keyId, group, model } = recomputed;
  const stored = figuresOf(after);
  const differences = figuresOf(recomputed).flatMap(([name, text], index) => {
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

function figuresOf({ requests, failed, tokens, images, cost, overrun }: DaySum): [string, string][] {
  const counts = Object.entries({ requests, failed, ...tokens, images });
  return [
    ...counts.map(([name, count]): [string, string] => [name, String(count)]),
    ["cost", `${formatUsd(cost)} USD`],
    ["overrun", `${formatUsd(overrun)} USD`],
  ];
}
