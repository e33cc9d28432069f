/** The part of the audit that compares the sums per day with the entries. */
import type { DaySum, LedgerStore } from "../store/ledger.ts";
import { formatUsd } from "../metering/money.ts";
import type { Difference, Findings } from "./audit_findings.ts";
import type { EntryWalk } from "./audit_walk.ts";
import { DAY_MS } from "../store/days.ts";
import { emptySum, isSame, isWithin, nameOfDaySum } from "./day_sums.ts";

/** Sums read between two turns of the event loop, and those of the rest of their day. */
const PAGE = 1000;

/** A day before every other. */
const NO_DAY = Number.MIN_SAFE_INTEGER;

/** How many sums were compared. */
export interface DayCounts {
  /** Those whose entries are all there. */
  day_sums: number;
  /** Of them, those that grew meanwhile: the entries fit between two readings. */
  day_sums_in_motion: number;
  /** Those whose entries are pruned, so that nothing is left to compare them with. */
  day_sums_alone: number;
}

/** What the comparison needs. */
interface Parts {
  walk: EntryWalk;
  /** The first day whose entries are all there. */
  firstDay: number;
  findings: Findings;
  turn: () => Promise<void>;
}

/** The sums of some whole days. */
interface Page {
  sums: readonly DaySum[];
  /** The last of the days; infinite where there are no more. */
  until: number;
}

/**
 * Compares the sums of days whose entries are all there. A ledger in use grows meanwhile, so its sums are read before and
 * after the newest entries: the entries must make no less than the former and no more than the latter. For sums that stand
 * still, that is the same.
 */
export async function checkDays(ledger: LedgerStore, { walk, firstDay, findings, turn }: Parts): Promise<DayCounts> {
  const counts = { day_sums: 0, day_sums_in_motion: 0, day_sums_alone: await countBefore(ledger, { firstDay, turn }) };
  for (let since = firstDay; since < Infinity;) {
    const before = await readPage(ledger, since);
    await walk.toEnd(ledger, turn);
    const after = await readPage(ledger, since);
    const until = Math.min(before.until, after.until);
    const [low, high, made] = [before.sums, after.sums, walk.sums.within(since, until)].map(byName);
    for (const [name, known] of new Map([...made ?? [], ...low ?? [], ...high ?? []])) {
      if (known.day > until) continue;
      const nothing = emptySum(known);
      const sums = {
        low: low?.get(name) ?? nothing,
        made: made?.get(name) ?? nothing,
        high: high?.get(name) ?? nothing,
      };
      counts.day_sums++;
      if (!isSame(sums.low, sums.high)) counts.day_sums_in_motion++;
      if (!isWithin(sums.low, sums.made) || !isWithin(sums.made, sums.high)) findings.add(differs(sums));
    }
    since = until + 1;
  }
  return counts;
}

/** How many sums there are of days before the first one that is compared. */
async function countBefore(
  ledger: LedgerStore,
  { firstDay, turn }: Pick<Parts, "firstDay" | "turn">,
): Promise<number> {
  let count = 0;
  for (let since = NO_DAY; since < firstDay;) {
    const { sums, until } = await readPage(ledger, since);
    count += sums.filter(({ day }) => day < firstDay).length;
    since = until + 1;
    await turn();
  }
  return count;
}

async function readPage(ledger: LedgerStore, since: number): Promise<Page> {
  const sums = await ledger.days(since, PAGE);
  return { sums, until: sums.length < PAGE ? Infinity : sums.at(-1)?.day ?? Infinity };
}

function byName(sums: readonly DaySum[]): ReadonlyMap<string, DaySum> {
  return new Map(sums.map((sum) => [`${sum.day}\n${nameOfDaySum(sum)}`, sum]));
}

function differs({ low, made, high }: Record<"low" | "made" | "high", DaySum>): Difference {
  const { day, keyId, group, model } = made;
  const date = new Date(day * DAY_MS);
  const when = Number.isNaN(date.getTime()) ? `day ${day}` : date.toISOString().slice(0, 10);
  const kept = isSame(low, high) ? figuresOf(low) : figuresOf(high);
  const told = figuresOf(made).flatMap(([name, text], index) => {
    const other = kept[index]?.[1];
    return text === other ? [] : [`${name} is ${other}, the entries make ${text}`];
  });
  return {
    kind: "day_sum",
    message: `${when}, key "${keyId}", group "${group}", model "${model}": ${told.join("; ")}`,
  };
}

function figuresOf({ requests, failed, tokens, images, cost, overrun }: DaySum): [string, string][] {
  const counts = Object.entries({ requests, failed, ...tokens, images });
  return [
    ...counts.map(([name, count]): [string, string] => [name, String(count)]),
    ["cost", `${formatUsd(cost)} USD`],
    ["overrun", `${formatUsd(overrun)} USD`],
  ];
}
