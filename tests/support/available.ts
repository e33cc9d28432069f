/** Reads the remaining amount of a budget. */
import type { BudgetClaim, LedgerStore } from "../../lib/store/ledger.ts";

/** Returns the amount of a budget minus charges and holds. May be negative. */
export async function availableIn(ledger: Pick<LedgerStore, "spending">, claim: BudgetClaim): Promise<bigint> {
  const [spending] = await ledger.spending([claim]);
  if (spending === undefined) throw new Error("the ledger returned no amounts");
  return claim.budget - spending.charged - spending.held;
}
