import { assertEquals } from "@std/assert";
import { parseConfig } from "../../lib/config/parse.ts";
import { readGroupBudgets } from "../../lib/billing/group_budgets.ts";
import type { BudgetClaim } from "../../lib/store/ledger.ts";

const NOW = Date.UTC(2026, 10, 20, 12);

Deno.test("readGroupBudgets() reads each configured group budget once, for its period", async () => {
  const { groups } = parseConfig({
    groups: { a: { budget: { usd: "5", period: "month" } }, b: {}, c: { budget: { usd: "1", period: "total" } } },
  });
  const asked: BudgetClaim[] = [];
  const ledger = {
    left(claim: BudgetClaim): Promise<bigint> {
      asked.push(claim);
      return claim.id === "a" ? Promise.reject(new Error("out of reach")) : Promise.resolve(0n);
    },
  };
  await readGroupBudgets({ ledger, config: { groups }, now: NOW });
  const firstOfMonth = Date.UTC(2026, 10, 1) / 86_400_000;
  assertEquals(asked.map(({ scope, id, since }) => [scope, id, since]).toSorted(), [
    ["group", "a", firstOfMonth],
    ["group", "c", 0],
  ]);
});
