/** Budget periods, the budgets that a request counts against, and the error when a budget is exhausted. */
import type { Caller } from "../access/permissions.ts";
import type { Budget, Config } from "../config.ts";
import { type BudgetRefusal, GatewayError } from "../errors.ts";
import { dayName, dayOf } from "../store/days.ts";
import { type BudgetClaim, type HoldAnswer, type LedgerStore, readUserAccount, userAccount } from "../store/ledger.ts";
import { type Amount, formatUsd, parseUsd, periodText } from "./money.ts";

type Period = Budget["period"];

const DAYS_PER_WEEK = 7;
/** 1970-01-01 was a Thursday: three days after a Monday. */
const WEEKDAY_OF_FIRST_DAY = 3;

/**
 * Returns the first day of the period that contains `now` (Unix milliseconds), in UTC days since 1970-01-01; 0 for
 * `total`.
 */
export function periodStart(period: Period, now: number): number {
  switch (period) {
    case "day":
      return dayOf(now);
    case "week":
      return dayOf(now) - (dayOf(now) + WEEKDAY_OF_FIRST_DAY) % DAYS_PER_WEEK;
    case "month":
      return firstOfMonth(now, 0);
    case "total":
      return 0;
  }
}

/** Returns the first day of the next period, as `periodStart` does; `undefined` for `total`, which never ends. */
export function periodEnd(period: Period, now: number): number | undefined {
  switch (period) {
    case "day":
      return dayOf(now) + 1;
    case "week":
      return periodStart("week", now) + DAYS_PER_WEEK;
    case "month":
      return firstOfMonth(now, 1);
    case "total":
      return undefined;
  }
}

/** Returns the first day of the month that is `monthsLater` months after that of `now`. */
function firstOfMonth(now: number, monthsLater: number): number {
  const date = new Date(now);
  return dayOf(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + monthsLater, 1));
}

/**
 * Returns the budgets that a request of this caller counts against, with their periods at its arrival: that of its end
 * user, then that of the key, then that of the group. A key without its own budget has its group's `key_budget`, and
 * its end users without one set by the key have the group's `user_budget`.
 * @param request `user`: the end user that the client names; `arrivedAt`: Unix time in milliseconds
 * @throws {GatewayError} `invalid` if the key's requests must name an end user and this one does not
 */
export function budgetClaims(
  { keyId, groupName, group, rules }: Caller,
  { user = "", arrivedAt: now }: { user: string | undefined; arrivedAt: number },
): BudgetClaim[] {
  const claims: BudgetClaim[] = [];
  const userBudget = rules.user_budget ?? group.user_budget;
  if (userBudget !== undefined) {
    if (user === "" && userBudget.require_user) throw noUser();
    claims.push(budgetClaim(userBudget, { scope: "user", id: userAccount(keyId, user), now }));
  }
  const keyBudget = rules.budget ?? group.key_budget;
  if (keyBudget !== undefined) claims.push(budgetClaim(keyBudget, { scope: "key", id: keyId, now }));
  if (group.budget !== undefined) claims.push(budgetClaim(group.budget, { scope: "group", id: groupName, now }));
  return claims;
}

function noUser(): GatewayError {
  return new GatewayError(
    "invalid",
    'Missing end user: this API key has a budget for each end user, so name one in "user", "safety_identifier", ' +
      '"metadata.user_id" or the header "x-sluice-user"',
    { param: "user", code: "missing_required_parameter" },
  );
}

/** Returns a budget with the bounds of its current period. @param owner `now`: Unix time in milliseconds */
export function budgetClaim(
  { usd, period }: Budget,
  { scope, id, now }: { scope: BudgetClaim["scope"]; id: string; now: number },
): BudgetClaim {
  const until = periodEnd(period, now);
  return { scope, id, budget: parseUsd(usd), since: periodStart(period, now), ...(until !== undefined && { until }) };
}

/**
 * Returns the error for a request that exceeds a budget. The message says how much is left of the budget of a key or an
 * end user. For a group's budget it names only the configured amount, so that clients cannot see what other keys spent.
 * @param cost `maxCost`: the most that the request can cost
 */
export function budgetError(
  { claim, available, onHold }: Extract<HoldAnswer, { held: false }>,
  { maxCost }: { maxCost: Amount },
): GatewayError {
  const amount = `${formatUsd(claim.budget)} USD ${periodText(periodOf(claim))}`;
  const state = claim.scope === "group" ? "" : `, of which ${leftText(available, onHold)}`;
  const renewal = claim.until === undefined ? "It does not reset" : `It resets on ${dayName(claim.until)} at 00:00 UTC`;
  const refusal: BudgetRefusal = {
    scope: claim.scope,
    id: claim.scope === "user" ? readUserAccount(claim.id).user : claim.id,
    period: periodOf(claim),
    budget_usd: formatUsd(claim.budget),
    left_usd: formatUsd(available),
    held_usd: formatUsd(onHold),
    needed_usd: formatUsd(maxCost),
    ...(claim.until !== undefined && { resets_on: dayName(claim.until) }),
  };
  return new GatewayError(
    "limited",
    `Cannot pay for this request: it may cost up to ${formatUsd(maxCost)} USD, more than is left of the budget of ` +
      `${ownerText(claim)} (${amount}${state}). ${renewal}`,
    { code: "insufficient_quota", final: true, refusal: { budget: refusal } },
  );
}

function ownerText({ scope, id }: BudgetClaim): string {
  if (scope === "group") return `group "${id}"`;
  if (scope === "key") return "this API key";
  const { user } = readUserAccount(id);
  return user === "" ? "requests that name no end user" : `end user "${user}"`;
}

/** Describes the remaining amount, as 0 if it is negative because the budget was lowered after it was spent. */
function leftText(available: Amount, onHold: Amount): string {
  const text = `${formatUsd(available < 0n ? 0n : available)} USD is left`;
  return onHold > 0n ? `${text} and ${formatUsd(onHold)} USD is held for requests that are still running` : text;
}

function periodOf({ since, until }: BudgetClaim): Period {
  if (until === undefined) return "total";
  const days = until - since;
  if (days === 1) return "day";
  return days === DAYS_PER_WEEK ? "week" : "month";
}

/**
 * Makes the ledger add up the current period of each group budget ahead of the first request, with pauses. Without
 * this, the first request of a group would add up a SQLite ledger synchronously, which takes 0.15 s for a million sums
 * per day. The ledger keeps the totals current afterwards. Never rejects: the first request that needs a total reads it
 * again if this read failed.
 * @param parts `now`: Unix time in milliseconds
 */
export async function readGroupBudgets(
  { ledger, config, now }: { ledger: Pick<LedgerStore, "spending">; config: Pick<Config, "groups">; now: number },
): Promise<void> {
  for (const [id, { budget }] of Object.entries(config.groups)) {
    if (budget === undefined) continue;
    await ledger.spending([{ scope: "group", id, since: periodStart(budget.period, now) }]).catch(() => {});
  }
}
