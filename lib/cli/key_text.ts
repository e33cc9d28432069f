/** Formats keys, limits and budgets as text for the operator. */
import type { PublicKey } from "../access/public_key.ts";
import { periodText, roundUsd } from "../billing/money.ts";
import type { KeyWithBudget } from "../billing/reports/budget_report.ts";
import type { BudgetState } from "../billing/reports/schemas.ts";
import type { Budget, UserBudget } from "../config.ts";
import type { Limits } from "../catalog/model.ts";
import { tableText } from "./table.ts";

/** Formats keys as a table. */
export function keysTable(keys: readonly KeyWithBudget[]): string {
  const rows = keys.map(({ id, name, group, state, created_at, expires_at, last_used_at, budget }) => [
    id,
    name,
    group,
    state,
    created_at,
    expires_at ?? "never",
    last_used_at ?? "never",
    budget === null ? "-" : `${roundUsd(budget.spent_usd)}/${budget.budget_usd} ${periodText(budget.period)}`,
  ]);
  const header = ["ID", "NAME", "GROUP", "STATE", "CREATED", "EXPIRES", "LAST USED", "SPENT/BUDGET USD"];
  return tableText([header, ...rows]);
}

/** Formats all public facts of a key, one per line. Without `budget`, spent amounts are not shown. */
export function keyText(
  { id, name, group, state, rules, budget, ...key }: PublicKey & Partial<Pick<KeyWithBudget, "budget">>,
): string {
  const facts: [string, string | null | undefined][] = [
    ["id", id],
    ["group", group],
    ["state", state],
    ["created", key.created_at],
    ["expires", key.expires_at ?? "never"],
    ["last used", key.last_used_at ?? "never"],
    ["revoked", key.revoked_at],
    ["old secret", key.former_until === null ? null : `valid until ${key.former_until}`],
    ["models", rules.models && listText(rules.models)],
    ["endpoints", rules.endpoints && listText(rules.endpoints)],
    ["addresses", rules.ips && listText(rules.ips)],
    ["limits", rules.limits && limitsText(rules.limits)],
    ["budget", rules.budget && budgetText(rules.budget)],
    ["user budget", rules.user_budget && userBudgetText(rules.user_budget)],
    ["spent", budget && spentText(budget)],
  ];
  const lines = facts.map(([about, fact]) => typeof fact === "string" ? `  ${`${about}:`.padEnd(12)} ${fact}\n` : "");
  return `Key "${name}"\n${lines.join("")}`;
}

/** Formats limits, such as `60 requests and 10000 tokens per minute, 4 concurrent (reported only)`. */
export function limitsText({ requests_per_minute, tokens_per_minute, concurrency, report_only }: Limits): string {
  const perMinute = [
    ...(requests_per_minute === undefined ? [] : [`${requests_per_minute} requests`]),
    ...(tokens_per_minute === undefined ? [] : [`${tokens_per_minute} tokens`]),
  ].join(" and ");
  const parts = [
    ...(perMinute === "" ? [] : [`${perMinute} per minute`]),
    ...(concurrency === undefined ? [] : [`${concurrency} concurrent`]),
  ].join(", ");
  if (parts === "") return "none";
  return report_only ? `${parts} (reported only)` : parts;
}

/** Formats a budget, such as `5 USD per month`. */
export function budgetText({ usd, period }: Budget): string {
  return `${usd} USD ${periodText(period)}`;
}

/** Formats a budget of end users, such as `5 USD per month for each end user, who must be named`. */
export function userBudgetText({ require_user, ...budget }: UserBudget): string {
  return `${budgetText(budget)} for each end user${require_user ? ", who must be named" : ""}`;
}

/** Formats a budget's state, such as `1.2 of 5 USD per month, 0.1 held, 3.7 left, resets at 2026-12-01T00:00:00.000Z`. */
function spentText({ period, budget_usd, spent_usd, held_usd, left_usd, resets_at }: BudgetState): string {
  const reset = resets_at === null ? "" : `, resets at ${resets_at}`;
  return `${spent_usd} of ${budgetText({ usd: budget_usd, period })}, ${held_usd} held, ${left_usd} left${reset}`;
}

/** Formats a list, such as `acme/*, beta/one`. An empty list permits nothing: `none`. */
export function listText(list: readonly string[]): string {
  return list.length === 0 ? "none" : list.join(", ");
}
