/** Health: is the process alive, and can it answer. */
import type { Gateway, IsolateHealth } from "../gateway.ts";
import { jsonResponse } from "../http/json_response.ts";
import type { Health, HealthRow } from "../routing/health.ts";

/** What stands against taking requests, or would if there were more of it. */
export interface Readiness {
  /**
   * `degraded`: some models have no upstream that would answer, it is not the configuration that shall be in force, or the
   * store is out of reach and this node gets along without it for a while: keys that it knows, requests without a budget.
   */
  status: "ok" | "degraded" | "unavailable";
  /** Whether the store of keys answers. */
  store: boolean;
  /** Whether the ledger can be written: nothing that costs begins while it cannot. */
  ledger: boolean;
  /** Whether every upstream that was asked lets the gateway in, some do, or none does. */
  upstreams: "ok" | "some" | "none";
  /** Whether the configuration in force is the one that shall be: false where nodes share one that this one cannot use. */
  is_current: boolean;
}

/** 200: there is a gateway here. */
export function greet(): Response {
  return jsonResponse({ status: "ok" });
}

/** 200 while the event loop turns. Tells how late it is, in milliseconds: now, and at most in the last 15 seconds. */
export async function alive({ observer }: Gateway): Promise<Response> {
  const now = await observer.loop.now();
  return jsonResponse({
    status: "ok",
    loop_lag_ms: Math.round(now),
    loop_lag_max_ms: Math.round(Math.max(now, observer.loop.lagMs)),
  });
}

/**
 * 200 while the gateway can answer requests: its store answers, or it gets along without, and its ledger can be written.
 * Upstreams that do not let it in make it `degraded`, as a store out of reach does: another process would fare no better.
 * 503 where it cannot, and while it shuts down.
 */
export async function ready(gateway: Gateway): Promise<Response> {
  const { status } = await readiness(gateway);
  const response = jsonResponse({ status });
  return status === "unavailable" ? new Response(response.body, { status: 503, headers: response.headers }) : response;
}

/** How ready the gateway is, and why. */
export async function readiness(gateway: Gateway): Promise<Readiness> {
  return readinessOf({
    store: await isStoreThere(gateway),
    outage: outageOf(gateway),
    ledger: gateway.ledger.healthy,
    targets: healthRows(gateway),
    isCurrent: isCurrent(gateway),
  });
}

/** How this isolate is. */
export async function isolateHealth(gateway: Gateway): Promise<IsolateHealth> {
  const { observer, ledger } = gateway;
  return {
    store: await isStoreThere(gateway),
    ledger: ledger.healthy,
    ledgerQueue: ledger.queued,
    targets: healthRows(gateway),
    openRequests: observer.open.requests,
    openStreams: observer.open.streams,
    uptimeMs: observer.uptimeMs,
    lagMs: observer.loop.lagMs,
    heapUsedBytes: Deno.memoryUsage().heapUsed,
  };
}

function isStoreThere({ keys }: Gateway): Promise<boolean> {
  return keys.check().then(() => true, () => false);
}

/** What makes an isolate, or all of them, ready. */
export function readinessOf(
  { store, outage, ledger, targets, isCurrent }: Pick<IsolateHealth, "store" | "ledger" | "targets"> & {
    outage: Outage;
    isCurrent: boolean;
  },
): Readiness {
  const upstreams = standing(targets);
  const isWell = store && outage === "none" && upstreams === "ok" && isCurrent;
  const canServe = ledger && (outage === "none" ? store : outage === "bridged");
  const status = !canServe ? "unavailable" : isWell ? "ok" : "degraded";
  return { status, store: store && outage === "none", ledger, upstreams, is_current: isCurrent };
}

/** Whether a store of several nodes is out of reach, and if so, whether the keys that a node has seen go on to serve. */
export type Outage = "none" | "bridged" | "too_long";

/** How far the gateway is without its store. */
export function outageOf({ store, config }: Pick<Gateway, "store" | "config">): Outage {
  const reach = store.shared?.reach();
  if (reach === undefined || reach.up) return "none";
  return reach.downMs <= config.nodes.key_age_seconds * 1000 ? "bridged" : "too_long";
}

/** Whether the configuration in force is the one that shall be: of nodes that share one, not all may be able to use it. */
export function isCurrent({ reloader }: Pick<Gateway, "reloader">): boolean {
  return reloader.status().shared?.is_current ?? true;
}

/** How the targets stand that were asked so far. */
export function healthRows({ health }: Gateway & { readonly health?: Pick<Health, "snapshot"> }): HealthRow[] {
  return health?.snapshot() ?? [];
}

function standing(rows: readonly HealthRow[]): Readiness["upstreams"] {
  const out = rows.filter(({ state }) => state === "quarantined" || state === "open").length;
  if (out === 0) return "ok";
  return out < rows.length ? "some" : "none";
}
