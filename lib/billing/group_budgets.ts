/** Sums up group budgets at start, before the first request needs them. */
import type { Config } from "../config.ts";
import type { LedgerStore } from "../store/ledger.ts";
import { budgetClaim } from "./budgets.ts";

/** Dependencies. */
export interface GroupBudgetParts {
  ledger: Pick<LedgerStore, "left">;
  config: Pick<Config, "groups">;
  /** Unix time in milliseconds. */
  now: number;
}

/**
 * Makes the ledger sum up the current period of each group budget in slices. Without this, the first request of a group
 * would sum a SQLite ledger synchronously: 0.15 s for a million sums per day. The ledger keeps the totals current
 * afterwards. Never rejects: a failed read repeats at the first request that needs it.
 */
export async function readGroupBudgets({ ledger, config, now }: GroupBudgetParts): Promise<void> {
  for (const [id, { budget }] of Object.entries(config.groups)) {
    if (budget === undefined) continue;
    await ledger.left(budgetClaim(budget, { scope: "group", id, now })).catch(() => {});
  }
}
