/** `GET /v1/usage`: shows the holder of a key its spending, and what remains of its limits and budgets. */
import { type Caller, mayUse, requireCaller } from "../access/permissions.ts";
import { createAdmissionQueue } from "../admission_queue.ts";
import { isExpired } from "../catalog/catalog.ts";
import { endUserName } from "../billing/end_user_name.ts";
import { type BudgetOwner, budgetStates, spendingOfKey } from "../billing/reports/budget_report.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { callerLimitRequests, limitOwnerOf, limitRequestsFor } from "../limits/limit_requests.ts";
import type { OwnUsage } from "../openapi/schemas.ts";
import { readTarget } from "../server/route_matcher.ts";
import type { RouteContext } from "../server/router.ts";
import { userAccount } from "../store/ledger.ts";
import { readUserHeader } from "../request/request_meter.ts";

/**
 * These requests count toward no limit, and holds and entries wait for the same connections to a database: 2,000 of one
 * key made the store count as unreachable for all.
 */
const readings = createAdmissionQueue({
  concurrent: 4,
  waiting: 64,
  waitMs: 10_000,
  busy: () =>
    new GatewayError("limited", "Cannot read your usage now: too many such requests are waiting", {
      retryAfterMs: 2_000,
    }),
});

/**
 * Returns the usage of the caller's key. The request counts toward no limit and has no ledger entry.
 * @throws {GatewayError} `overloaded` if a store is unreachable; `limited` if too many such requests wait; `invalid` if
 * the header with the end user is malformed
 */
export async function showOwnUsage(request: Request, { gateway, caller }: RouteContext): Promise<Response> {
  const own = requireCaller(caller);
  const user = readEndUser(request);
  const leave = await readings.enter(request.signal, own);
  try {
    return Response.json(await readOwnUsage(own, user, gateway), { headers: { "cache-control": "no-store" } });
  } finally {
    leave();
  }
}

async function readOwnUsage(own: Caller, user: string | undefined, gateway: Gateway): Promise<OwnUsage> {
  return {
    object: "usage",
    key: { id: own.keyId, name: own.keyName, group: own.groupName },
    spent: await spendingOfKey(gateway.ledger, own.keyId, gateway.now()),
    budgets: await ownBudgets(gateway, own),
    user_budget: await ownUserBudget(gateway, own, user),
    limits: await ownLimits(gateway, own),
  };
}

/** Reads the end user whose budget is requested, from the query or else from the header. */
function readEndUser(request: Request): string | undefined {
  const user = new URLSearchParams(readTarget(request).query).get("user");
  return user === null ? readUserHeader(request.headers) : endUserName(user);
}

async function ownBudgets(
  { ledger, now }: Gateway,
  { keyId, groupName, group, rules }: Caller,
): Promise<OwnUsage["budgets"]> {
  const keyBudget = rules.budget ?? group.key_budget;
  const owners: BudgetOwner[] = [
    ...(keyBudget === undefined ? [] : [{ scope: "key" as const, id: keyId, budget: keyBudget }]),
    ...(group.budget === undefined ? [] : [{ scope: "group" as const, id: groupName, budget: group.budget }]),
  ];
  const states = await budgetStates(ledger, owners, now());
  return states.map((state, index): OwnUsage["budgets"][number] => {
    if (owners[index]?.scope === "key") return { owner: "key", ...state };
    // Clients must not see what other keys of the group spend.
    const { spent_usd: _, held_usd: __, ...shown } = state;
    return { owner: "group", ...shown };
  });
}

async function ownUserBudget(
  { ledger, now }: Gateway,
  { keyId, group, rules }: Caller,
  user: string | undefined,
): Promise<OwnUsage["user_budget"]> {
  const budget = rules.user_budget ?? group.user_budget;
  if (budget === undefined) return null;
  const { usd: budget_usd, period, require_user } = budget;
  if (user === undefined) return { period, budget_usd, require_user };
  const [state] = await budgetStates(ledger, [{ scope: "user", id: userAccount(keyId, user), budget }], now());
  return { period, budget_usd, require_user, user, ...state };
}

async function ownLimits({ limiter, now, catalog }: Gateway, caller: Caller): Promise<OwnUsage["limits"]> {
  const models = catalog.models.filter((model) => mayUse(caller, model.id) && !isExpired(model, now()));
  const limitRequests = [
    ...callerLimitRequests(caller),
    ...models.flatMap(({ id, limits }) => limitRequestsFor({ type: "model", id }, limits)),
  ].filter(({ reportOnly }) => !reportOnly);
  if (limitRequests.length === 0) return [];
  const statuses = await limiter.statuses(limitRequests);
  return statuses.map(({ limitRequest, remaining, resetMs }): OwnUsage["limits"][number] => {
    const { unit, limit } = limitRequest;
    const { type, id } = limitOwnerOf(limitRequest);
    return {
      owner: type,
      ...(type === "model" && { model: id }),
      unit,
      limit,
      used: Math.max(0, limit - remaining),
      left: remaining,
      resets_at: resetMs === 0 || unit === "concurrency" ? null : new Date(now() + resetMs).toISOString(),
    };
  });
}
