/** The health endpoints: whether the process is alive, and whether it can serve requests. */
import type { Config } from "../config.ts";
import type { Gateway } from "../gateway.ts";
import { jsonResponse } from "../server/json_response.ts";
import type { RouteContext } from "../server/router.ts";
import type { HealthRow } from "../routing/health.ts";

/** The readiness of the gateway, with the reasons if it cannot serve requests. */
export interface Readiness {
  /**
   * `unavailable`: requests cannot be served. `degraded`: they can, but a target fails or is not yet known to work
   * again, an upstream refuses the gateway's key, the active configuration is not the latest or the last reload was
   * refused, the limits store is unreachable, changes in the store cannot be read, or only keys that this node knows
   * are served because the store is unreachable or its keys cannot be read. While it is unreachable, requests with a
   * budget are refused.
   */
  status: "ok" | "degraded" | "unavailable";
  /** The reasons, such as "degraded: openai answered 0 of its last 7 attempts"; absent if the status is `ok`. */
  message?: string;
  /** True if the key store answers. */
  store: boolean;
  /** True if the ledger can be written. Otherwise, billed requests are refused. */
  ledger: boolean;
  /** True if the limits store is reachable. */
  limits_healthy: boolean;
  /** State of the targets: all, some or none of those that had requests are usable. */
  upstreams: "ok" | "some" | "none";
  /** True if the latest configuration is active; false if this node cannot use the shared one. */
  is_current: boolean;
}

/** Answers 200, which shows that a gateway is at this address. */
export function greet(): Response {
  return jsonResponse({ status: "ok" });
}

/** The readiness of a gateway that shuts down. */
const SHUTTING_DOWN = {
  status: "unavailable",
  message: "unavailable: the gateway is shutting down",
} as const satisfies Partial<Readiness>;

/** Answers 200 with the current delay of the event loop and the longest of the last 15 seconds, in milliseconds. */
export async function answerLiveness({ observer }: Gateway): Promise<Response> {
  const now = await observer.loop.now();
  return jsonResponse({
    status: "ok",
    loop_lag_ms: Math.round(now),
    loop_lag_max_ms: Math.round(Math.max(now, observer.loop.lagMs)),
  });
}

/**
 * Answers 200 while the gateway can serve requests, otherwise 503. Failing upstreams make it only `degraded`, and so
 * does, for a while, a store that no node can reach, because a load balancer could not choose a better node. If the
 * store answers other nodes, this node answers 503. So does a node that shuts down.
 */
export async function answerReadiness({ gateway, drain }: Pick<RouteContext, "gateway" | "drain">): Promise<Response> {
  const { status, message } = drain.phase === "serving" ? await readiness(gateway) : SHUTTING_DOWN;
  const response = jsonResponse({ status, ...(message !== undefined && { message }) });
  return status === "unavailable" ? new Response(response.body, { status: 503, headers: response.headers }) : response;
}

/** Returns whether the gateway can serve requests, with the reasons if it cannot or is degraded. */
export async function readiness(gateway: Gateway): Promise<Readiness> {
  const store = await gateway.keys.check().then(() => true, () => false);
  const reach = gateway.store.shared?.reach();
  const outage = reach === undefined ? "none" : outageOf(gateway, { reach, store });
  const isReadable = reach?.isReadable !== false || outage !== "none";
  const { healthy: ledger } = gateway.ledger;
  const { healthy: limits_healthy } = gateway.limiter;
  const rows = gateway.health.snapshot();
  const isFailing = failureTest(gateway.config.routing.breaker);
  const failing = rows.filter(isFailing).length;
  const someFail = failing < rows.length ? "some" : "none";
  const reasons = [
    ...(ledger ? [] : ["the ledger cannot be written"]),
    ...(outage === "none" ? [] : [outageReason(outage, reach?.up)]),
    ...(outage === "none" && !store ? ["the store does not answer"] : []),
    ...(isReadable ? [] : ["changes of keys and of the configuration cannot be read"]),
    ...(limits_healthy ? [] : ["the limits store is unreachable"]),
    ...describeConfig(gateway),
    ...describeFailing(rows, isFailing),
  ];
  const facts: Omit<Readiness, "status" | "message"> = {
    store: store && outage === "none",
    ledger,
    limits_healthy,
    upstreams: failing === 0 ? "ok" : someFail,
    is_current: isCurrent(gateway),
  };
  if (reasons.length === 0) return { status: "ok", ...facts };
  const canServe = ledger && (outage === "none" ? store : outage === "bridged");
  const status = canServe ? "degraded" : "unavailable";
  return { status, message: `${status}: ${reasons.join("; ")}`, ...facts };
}

/** Describes why the configuration in force is not the intended one. */
function describeConfig({ reloader }: Pick<Gateway, "reloader">): string[] {
  if (!isCurrent({ reloader })) return ["the configuration in force is not the latest one"];
  if (reloader.status().last_error === undefined) return [];
  return ["the last reload was refused, and the configuration before it is in force"];
}

/** Words the reason for the message. */
function outageReason(outage: Exclude<Outage, "none">, isUp = false): string {
  const state = isUp ? "unreadable" : "unreachable";
  if (outage === "too_long") return `the store has been ${state} for too long`;
  return `the store is ${state}${outage === "alone" ? " from this node only" : ""}`;
}

/** Largest number of upstreams and models that a message names. */
const MAX_NAMED = 5;

/** Describes the failing targets: as a whole upstream if all its targets fail, otherwise model by model. */
function describeFailing(rows: readonly HealthRow[], isFailing: (row: HealthRow) => boolean): string[] {
  const parts = [...Map.groupBy(rows, ({ upstream }) => upstream)].flatMap(([upstream, targets]) => {
    const failing = targets.filter(isFailing);
    if (failing.some(({ state }) => state === "quarantined")) return [`${upstream} refuses the gateway's key`];
    if (failing.length === targets.length) return [describeAttempts(upstream, failing)];
    return failing.map((row) => describeAttempts(`${upstream} (${row.model})`, [row]));
  });
  const more = parts.length - MAX_NAMED;
  return more > 0 ? [...parts.slice(0, MAX_NAMED), `${more} more fail`] : parts;
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

/**
 * State of an outage of the shared store. `bridged`: it is unreachable or its keys cannot be read, and this node still
 * serves the keys that it knows. `too_long`: this node no longer serves them. `alone`: the store still answers other
 * nodes, which can serve more than this one.
 */
export type Outage = "none" | "bridged" | "too_long" | "alone";

/**
 * If another node got an answer from the store more than this time after this node lost the connection, only this node
 * lost it. In milliseconds. When a store fails, nodes notice it one after the other.
 */
const ALONE_MS = 2_000;

/** Returns the state of an outage of the shared store. `store`: its keys can be read. */
function outageOf(
  { config, limiter }: Pick<Gateway, "config" | "limiter">,
  { reach, store }: { reach: { up: boolean; isReadable: boolean; downMs: number }; store: boolean },
): Outage {
  if (reach.up && (store || reach.isReadable)) return "none";
  const { msSinceOthersAnswered } = limiter;
  if (msSinceOthersAnswered !== undefined && reach.downMs - msSinceOthersAnswered > ALONE_MS) return "alone";
  return reach.downMs <= config.nodes.key_age_seconds * 1000 ? "bridged" : "too_long";
}

/** Returns whether the latest configuration is active. A node may be unable to use a shared one. */
export function isCurrent({ reloader }: Pick<Gateway, "reloader">): boolean {
  return reloader.status().shared?.is_current ?? true;
}

/** Creates a function that tells whether a target is failing. Repeated failures count even if its breaker is closed. */
export function failureTest(
  { consecutive_failures: maxFailures }: Config["routing"]["breaker"],
): (row: HealthRow) => boolean {
  return ({ state, consecutive_failures }) =>
    state === "quarantined" || state === "open" || state === "half_open" || consecutive_failures >= maxFailures;
}
