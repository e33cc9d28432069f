/** Checks that the single entries of a period were not pruned, for reports that the sums per day do not suffice for. */
import { dayName, dayOf } from "../../store/days.ts";
import type { LedgerStart, LedgerStore } from "../../store/ledger.ts";
import { PrunedEntriesError } from "./report_errors.ts";

/**
 * Checks that no entry since a moment (Unix milliseconds) was pruned.
 * @param query `by`: the grouping or filter that needs single entries, for the error
 * @throws {PrunedEntriesError} if some were pruned
 */
export async function requireEntries(
  ledger: Pick<LedgerStore, "start">,
  { since, by }: { since: number; by: string },
): Promise<void> {
  const { day: prunedDay } = await ledger.start();
  // -1 if no entry was pruned.
  if (prunedDay < 0 || dayOf(since) > prunedDay) return;
  const from = dayName(prunedDay + 1);
  throw new PrunedEntriesError(`Cannot sum up by ${by}: single requests are kept from ${from} on`, from);
}

/** Returns whether entries of a day were pruned. @param day UTC days since 1970-01-01 */
export function isPrunedDay({ day: prunedDay, ahead = [] }: LedgerStart, day: number): boolean {
  return day <= prunedDay || ahead.includes(day);
}
