/** Checks that single entries of a period still exist: some reports need facts that the sums per day do not have. */
import { dayName, dayOf } from "../../store/days.ts";
import type { LedgerStore } from "../../store/ledger.ts";
import { PrunedEntriesError } from "./report_errors.ts";

/**
 * Checks that no entry since a moment (Unix milliseconds) was pruned.
 * @param by grouping or filter that needs entries
 * @throws {PrunedEntriesError}
 */
export async function requireEntries(
  ledger: Pick<LedgerStore, "start">,
  { since, by }: { since: number; by: string },
): Promise<void> {
  const { day: gone } = await ledger.start();
  // -1 if no entry was pruned.
  if (gone < 0 || dayOf(since) > gone) return;
  const from = dayName(gone + 1);
  throw new PrunedEntriesError(`Cannot sum up by ${by}: single requests are kept from ${from} on`, from);
}
