/** Budgets and limits of groups as readings of metrics. */
import { type BudgetOwner, budgetStates } from "../billing/reports/budget_report.ts";
import { parseUsd } from "../billing/money.ts";
import type { Gateway } from "../gateway.ts";
import { groupLimitRequests, limitOwnerOf } from "../limits/limit_requests.ts";
import type { Vitals } from "../observe/metrics.ts";
import type { Reading } from "../observe/registry.ts";

/** Readings of groups at one moment, the most used up first. */
export type GroupReadings = Pick<Vitals, "groupBudgets" | "groupBudgetsLeft" | "groupLimits" | "groupLimitsLeft">;

/** A budget or limit, and its rest. */
interface Rest {
  labels: NonNullable<Reading["labels"]>;
  whole: Reading["value"];
  left: Reading["value"];
}

/** Reads the budgets and limits of all groups. Readings of an unreachable store are left out. */
export async function readGroups(gateway: Gateway): Promise<GroupReadings> {
  const [budgets, limits] = await Promise.all([
    readBudgets(gateway).catch(() => []),
    readLimits(gateway).catch(() => []),
  ]);
  const wholeOf = ({ labels, whole: value }: Rest): Reading => ({ labels, value });
  const leftOf = ({ labels, left: value }: Rest): Reading => ({ labels, value });
  return {
    groupBudgets: () => budgets.map(wholeOf),
    groupBudgetsLeft: () => budgets.map(leftOf),
    groupLimits: () => limits.map(wholeOf),
    groupLimitsLeft: () => limits.map(leftOf),
  };
}

async function readBudgets({ config: { groups }, ledger, now }: Gateway): Promise<Rest[]> {
  const owners = Object.entries(groups).flatMap(([id, { budget }]): BudgetOwner[] =>
    budget === undefined ? [] : [{ scope: "group", id, budget }]
  );
  const states = await budgetStates(ledger, owners, now());
  return states
    .map((state, index) => ({
      labels: { group: owners[index]?.id ?? "" },
      whole: state.budget_usd,
      left: state.left_usd,
      used: parseUsd(state.spent_usd) + parseUsd(state.held_usd),
      budget: parseUsd(state.budget_usd),
    }))
    .sort((one, other) => compareShares(other.used * one.budget, one.used * other.budget));
}

async function readLimits({ config: { groups }, limiter }: Gateway): Promise<Rest[]> {
  const limitRequests = Object.entries(groups).flatMap(([name, group]) =>
    groupLimitRequests(name, group, { input: 0, output: 0 })
  );
  if (limitRequests.length === 0) return [];
  const statuses = await limiter.statuses(limitRequests);
  return statuses
    .map(({ limitRequest: { name, unit, limit }, remaining }) => ({
      labels: { group: limitOwnerOf({ name }).id, unit },
      whole: limit,
      left: remaining,
    }))
    .sort((one, other) => one.left * other.whole - other.left * one.whole);
}

function compareShares(one: bigint, other: bigint): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
