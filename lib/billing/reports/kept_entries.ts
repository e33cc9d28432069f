/** Checks that the single entries of a period were not pruned, for reports that the sums per day do not suffice for. */
import { dayName, dayOf } from "../../store/days.ts";
import type { LedgerStart, LedgerStore } from "../../store/ledger.ts";
import type { Period } from "./period.ts";
import { PrunedEntriesError } from "./report_errors.ts";

/** A period of which no single entry may have been pruned; `by`: the grouping or filter that needs them, for the error. */
export type NeededEntries = Period & { by: string };

/**
 * Reads sums that need single entries. Checks before the reading that they are there, and again afterwards, because they
 * may be pruned in between.
 * @param needed absent: no single entry is needed
 * @throws {PrunedEntriesError} if some were pruned
 */
export async function readKeptEntries<Result>(
  ledger: Pick<LedgerStore, "start">,
  needed: NeededEntries | undefined,
  read: () => Promise<Result>,
): Promise<Result> {
  if (needed === undefined) return await read();
  await requireEntries(ledger, needed);
  const result = await read();
  await requireEntries(ledger, needed);
  return result;
}

/**
 * Checks that no entry of a period (Unix milliseconds; `until` is exclusive) was pruned.
 * @throws {PrunedEntriesError} if some were pruned
 */
async function requireEntries(
  ledger: Pick<LedgerStore, "start">,
  { since, until, by }: NeededEntries,
): Promise<void> {
  const { day: prunedDay, ahead = [] } = await ledger.start();
  const first = dayOf(since);
  const last = dayOf(until - 1);
  const lastAhead = Math.max(...ahead.filter((day) => first <= day && day <= last));
  if (lastAhead >= first) {
    throw new PrunedEntriesError(
      `Cannot sum up by ${by}: single requests of ${dayName(lastAhead)} were pruned, because a clock was ahead`,
      dayName(lastAhead + 1),
    );
  }
  // -1 if no entry was pruned.
  if (prunedDay < 0 || first > prunedDay) return;
  const from = dayName(prunedDay + 1);
  throw new PrunedEntriesError(`Cannot sum up by ${by}: single requests are kept from ${from} on`, from);
}

/** Returns whether entries of a day were pruned. @param day UTC days since 1970-01-01 */
export function isPrunedDay({ day: prunedDay, ahead = [] }: LedgerStart, day: number): boolean {
  return day <= prunedDay || ahead.includes(day);
}
