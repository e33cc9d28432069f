/** `GET /metrics`: reads the values of all metrics and renders them. */
import denoJson from "../../deno.json" with { type: "json" };
import { compareValues } from "../compare_values.ts";
import type { Gateway } from "../gateway.ts";
import type { Reading } from "../observe/registry.ts";
import type { HealthRow } from "../routing/health.ts";
import { isCurrent } from "./health.ts";
import { groupBudgets } from "../billing/reports/budget_report.ts";
import { parseUsd } from "../billing/money.ts";
import { limitOwnerOf, limitRequestsFor } from "../limits/limit_requests.ts";
import type { GroupAllowance } from "../observe/metrics.ts";

/** Values for the states of circuit breakers. A higher value is worse. */
const STATES: Readonly<Record<HealthRow["state"], number>> = {
  closed: 0,
  half_open: 1,
  cooling: 2,
  open: 3,
  quarantined: 4,
};

/** Returns the metrics in Prometheus's text format 0.0.4. */
export async function metrics(gateway: Gateway): Promise<Response> {
  const { observer, ledger, limiter, recall, reloader, store } = gateway;
  // If a store is unreachable, the values that need it are left out.
  const [groupBudgets, groupLimits] = await Promise.all([
    readBudgets(gateway).catch(() => []),
    readLimits(gateway).catch(() => []),
  ]);
  const reach = store.shared?.reach();
  const { rss, heapUsed } = Deno.memoryUsage();
  const text = observer.metrics({
    keptBytes: recall.bytes,
    ledgerQueue: ledger.queued,
    ledgerHealthy: ledger.healthy,
    storeUp: reach?.up ?? true,
    journalEntries: reach?.waiting ?? 0,
    limitsStoreUp: limiter.healthy,
    configVersion: reloader.status().version,
    configCurrent: isCurrent(gateway) && reloader.status().last_error === undefined,
    breakers: breakers(gateway),
    groupBudgets,
    groupLimits,
    rss,
    heapUsed,
    version: denoJson.version,
  });
  const body = new TextEncoder().encode(text);
  return new Response(body, {
    headers: {
      "content-type": "text/plain; version=0.0.4; charset=utf-8",
      "content-length": String(body.byteLength),
      "cache-control": "no-store",
    },
  });
}

/**
 * Returns the value of a circuit breaker's state. A breaker counts as open until a request tests the target; if
 * requests are rare, that is long after its open time is over.
 */
function breakerValue({ state, awaits_trial: awaitsTrial }: HealthRow): number {
  return awaitsTrial ? Math.max(STATES.open, STATES[state]) : STATES[state];
}

/** Returns the values of all circuit breakers, the worst first. */
function breakers(gateway: Gateway): Reading[] {
  return gateway.health.snapshot()
    .map((row) => ({ row, value: breakerValue(row) }))
    .sort((a, b) => b.value - a.value)
    .map(({ row: { upstream, model }, value }) => ({ labels: { upstream, model }, value }));
}

/** Reads the budgets of all groups, the most used first. */
async function readBudgets({ config: { groups }, ledger, now }: Gateway): Promise<GroupAllowance[]> {
  return [...await groupBudgets(ledger, groups, now())]
    .map(([group, state]) => ({
      labels: { group },
      total: state.budget_usd,
      remaining: state.left_usd,
      used: parseUsd(state.spent_usd) + parseUsd(state.held_usd),
      budget: parseUsd(state.budget_usd),
    }))
    .sort((one, other) => compareValues(other.used * one.budget, one.used * other.budget));
}

/** Reads the limits of all groups, the most used first. */
async function readLimits({ config: { groups }, limiter }: Gateway): Promise<GroupAllowance[]> {
  const limitRequests = Object.entries(groups).flatMap(([name, { limits }]) =>
    limitRequestsFor({ type: "group", id: name }, limits)
  );
  if (limitRequests.length === 0) return [];
  const statuses = await limiter.statuses(limitRequests);
  return statuses
    .map(({ limitRequest: { name, unit, limit }, remaining }) => ({
      labels: { group: limitOwnerOf({ name }).id, unit },
      total: limit,
      remaining,
    }))
    .sort((one, other) => one.remaining * other.total - other.remaining * one.total);
}
