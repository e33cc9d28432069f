/** Health: is the process alive, and can it answer. */
import type { Config } from "../config.ts";
import type { Gateway } from "../gateway.ts";
import { jsonResponse } from "../server/json_response.ts";
import type { Health, HealthRow } from "../routing/health.ts";

/** Reasons why the gateway is not ready, or degraded. */
export interface Readiness {
  /**
   * `degraded`: a target fails, has yet to show that it works again, or belongs to an upstream that refuses the gateway's
   * key; it is not the configuration that shall be in force; the store of limits is out of reach; or the store is, and
   * this node gets along without it for a while: keys that it knows, requests without a budget.
   */
  status: "ok" | "degraded" | "unavailable";
  /** A sentence with the reasons, such as "degraded: openai answered 0 of its last 7 attempts"; absent where it is ok. */
  message?: string;
  /** True if the key store answers. */
  store: boolean;
  /** True if the ledger is writable. Billed requests are refused while it is not. */
  ledger: boolean;
  /** False while the store of limits is out of reach. */
  limits_healthy: boolean;
  /** Health of the targets that were called: all, some or none are up. */
  upstreams: "ok" | "some" | "none";
  /** True if the current configuration is active; false if this node cannot use the shared one. */
  is_current: boolean;
}

/** Answers 200: a gateway is at this address. */
export function greet(): Response {
  return jsonResponse({ status: "ok" });
}

/** Answers 200 with the delay of the event loop in milliseconds: the present one, and the longest in 15 seconds. */
export async function alive({ observer }: Gateway): Promise<Response> {
  const now = await observer.loop.now();
  return jsonResponse({
    status: "ok",
    loop_lag_ms: Math.round(now),
    loop_lag_max_ms: Math.round(Math.max(now, observer.loop.lagMs)),
  });
}

/**
 * Answers 200 while the gateway can serve requests, else 503. Failing upstreams only make it `degraded`, and so does a
 * store that no node can reach: no other node would do better. If the store answers another node, this one answers 503.
 * During shutdown the app answers 503 itself.
 */
export async function ready(gateway: Gateway): Promise<Response> {
  const { status, message } = await readiness(gateway);
  const response = jsonResponse({ status, ...(message !== undefined && { message }) });
  return status === "unavailable" ? new Response(response.body, { status: 503, headers: response.headers }) : response;
}

/** Returns whether the gateway can serve requests, with the reasons if it cannot or is degraded. */
export async function readiness(gateway: Gateway): Promise<Readiness> {
  const store = await isStoreThere(gateway);
  const outage = outageOf(gateway);
  const { healthy: ledger } = gateway.ledger;
  const { healthy: limits_healthy } = gateway.limiter;
  const is_current = isCurrent(gateway);
  const rows = healthRows(gateway);
  const isFailing = failureTest(gateway.config.routing.breaker);
  const failing = rows.filter(isFailing).length;
  const upstreams = failing === 0 ? "ok" : failing < rows.length ? "some" : "none";
  const isWell = store && outage === "none" && limits_healthy && upstreams === "ok" && is_current;
  const canServe = ledger && (outage === "none" ? store : outage === "bridged");
  const status = !canServe ? "unavailable" : isWell ? "ok" : "degraded";
  const reasons = [
    ...(ledger ? [] : ["the ledger cannot be written"]),
    ...(outage !== "none" ? [OUTAGE_REASONS[outage]] : store ? [] : ["the store does not answer"]),
    ...(limits_healthy ? [] : ["the limits store is unreachable"]),
    ...(is_current ? [] : ["the configuration in force is not the latest one"]),
    ...describeFailing(rows, isFailing),
  ];
  const message = status === "ok" ? {} : { message: `${status}: ${reasons.join("; ")}` };
  return { status, ...message, store: store && outage === "none", ledger, limits_healthy, upstreams, is_current };
}

/** Reasons by the state of the store that nodes share. */
const OUTAGE_REASONS: Readonly<Record<Exclude<Outage, "none">, string>> = {
  bridged: "the store is unreachable",
  too_long: "the store has been unreachable for too long",
  alone: "the store is unreachable from this node only",
};

/** Most upstreams that a sentence names. */
const NAMED_UPSTREAMS = 5;

/** Describes the failing targets: the whole upstream where all of its targets fail, else each model. */
function describeFailing(rows: readonly HealthRow[], isFailing: (row: HealthRow) => boolean): string[] {
  const parts = [...Map.groupBy(rows, ({ upstream }) => upstream)].flatMap(([upstream, targets]) => {
    const failing = targets.filter(isFailing);
    if (failing.some(({ state }) => state === "quarantined")) return [`${upstream} refuses the gateway's key`];
    if (failing.length === targets.length) return [describeAttempts(upstream, failing)];
    return failing.map((row) => describeAttempts(`${upstream} (${row.model})`, [row]));
  });
  const more = parts.length - NAMED_UPSTREAMS;
  return more > 0 ? [...parts.slice(0, NAMED_UPSTREAMS), `${more} more fail`] : parts;
}

function describeAttempts(name: string, rows: readonly HealthRow[]): string {
  const attempts = rows.reduce((sum, row) => sum + row.recent_attempts, 0);
  const answers = rows.reduce((sum, row) => sum + row.recent_answers, 0);
  const [first, ...others] = rows;
  const failed = answers > 0 && others.length === 0 ? first?.consecutive_failures ?? 0 : 0;
  return `${name} answered ${answers} of its last ${attempts} attempts${
    failed > 0 ? `, none of the last ${failed}` : ""
  }`;
}

function isStoreThere({ keys }: Gateway): Promise<boolean> {
  return keys.check().then(() => true, () => false);
}

/**
 * State of a store of several nodes that may be out of reach. `bridged`: the keys that a node has seen go on to serve.
 * `alone`: the store answers another node, which can serve what this one cannot.
 */
export type Outage = "none" | "bridged" | "too_long" | "alone";

/**
 * Least time from this node's loss of the store to another node's last answer from it, in milliseconds: where a store
 * goes, nodes notice it one after the other.
 */
const ALONE_MS = 2_000;

/** Returns the state of an outage of the shared store. */
function outageOf({ store, config, limiter }: Pick<Gateway, "store" | "config" | "limiter">): Outage {
  const reach = store.shared?.reach();
  if (reach === undefined || reach.up) return "none";
  const { msSinceOthersAnswered } = limiter;
  if (msSinceOthersAnswered !== undefined && reach.downMs - msSinceOthersAnswered > ALONE_MS) return "alone";
  return reach.downMs <= config.nodes.key_age_seconds * 1000 ? "bridged" : "too_long";
}

/** True if the active configuration is the latest one. Of nodes that share one, some may be unable to use it. */
export function isCurrent({ reloader }: Pick<Gateway, "reloader">): boolean {
  return reloader.status().shared?.is_current ?? true;
}

/** Returns the health of all targets that had a request. */
export function healthRows({ health }: Gateway & { readonly health?: Pick<Health, "snapshot"> }): HealthRow[] {
  return health?.snapshot() ?? [];
}

/** Creates a test for failing targets. Repeated failures count even if the breaker may not open. */
export function failureTest(
  { consecutive_failures: failures }: Config["routing"]["breaker"],
): (row: HealthRow) => boolean {
  return ({ state, consecutive_failures }) =>
    state === "quarantined" || state === "open" || state === "half_open" || consecutive_failures >= failures;
}
