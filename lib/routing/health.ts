/**
 * Types for the health of targets. A target is an upstream with one of its models. Each target has a circuit breaker,
 * so that a limit or failure of one model does not affect the others. The gateway's key counts for all models of the
 * upstream.
 *
 * The content of a request can make an upstream fail. Therefore an outcome counts first for the client key that sent
 * the request. It counts for all keys if other keys have failed as well, or if no request can be the cause.
 */
import type { Model, Target } from "../catalog/model.ts";
import type { TargetRefusal } from "../errors.ts";
import type { StartTimer } from "../start_timer.ts";
import type { BreakerTicket } from "./circuit_breaker.ts";
import type { HealthTracker } from "./health_tracker.ts";

/** When a breaker opens, and for how long. */
export interface BreakerOptions {
  /** Time that an outcome counts, in milliseconds. */
  windowMs: number;
  /** Minimum number of requests in the window for which `failureShare` applies. */
  minSamples: number;
  /** Share of failures, from 0 to 1, that opens the breaker. */
  failureShare: number;
  /** Number of consecutive failures of any kind that opens the breaker. */
  consecutiveFailures: number;
  /** Number of consecutive failures to connect that opens the breaker. */
  connectFailures: number;
  /** First open time, in milliseconds. If the breaker opens again soon, it is doubled, then tripled. */
  openMs: number;
}

/** Outcome of a request at a target. */
export type TargetOutcome =
  /** The target answered, or began to answer. */
  | { type: "success" }
  | { type: "failure" }
  /** No connection could be made. */
  | { type: "unreachable" }
  /** The target's rate limit is reached. This is not a failure. */
  | { type: "limited"; retryAfterMs?: number | undefined }
  /** The target is overloaded. This is a failure; the target may say for how long. */
  | { type: "busy"; retryAfterMs?: number | undefined }
  /** The target answered 401. A probe finds out whether it refuses the gateway's key. */
  | { type: "refused" }
  /** The outcome says nothing about the target: the client made a mistake or disconnected. */
  | { type: "neither" };

/** Identifies a target. */
export interface TargetKey extends Pick<Target, "upstream" | "model"> {
  /**
   * The model row, if its health is tracked separately; absent: rows with the same upstream and model share their
   * health.
   */
  readonly row?: string;
}

/** Returns the unique name of a target. Names of upstreams contain no slash. */
export function targetName(target: TargetKey): string {
  return `${target.upstream}/${targetModelName(target)}`;
}

/** Returns the name of a target's model for operators, with its row if the health is tracked separately. */
export function targetModelName({ model, row }: TargetKey): string {
  return row === undefined ? model : `${row}:${model}`;
}

/** A request for a permit: the target, its model, and the client key. */
export interface PermitRequest {
  model: { readonly id: Model["id"]; readonly targets: readonly TargetKey[] };
  target: TargetKey;
  key: string;
  /** True if the request may begin a trial although the breaker is still open, because it has no other target. */
  early?: boolean;
}

/** Permission to send one request to a target. Its outcome must be reported. */
export interface Permit {
  readonly target: TargetKey;
  readonly key: string;
  /** True if the request is a trial at a target whose breaker is half-open. */
  readonly isTrial: boolean;
  /** Tickets of the breaker for all keys, and of the one for this key, if there is one. */
  tickets: { readonly all: BreakerTicket; readonly client: BreakerTicket | undefined };
  /** When its answer began, by the monotonic clock; absent: it has not. */
  succeededAt?: number;
}

/** Why a target is unavailable, and for how long as far as is known, in milliseconds. */
export interface Unavailability extends Pick<TargetRefusal, "why"> {
  waitMs: number;
}

/** A permit for an attempt at a target, or the reason why there is none. */
export type PermitDecision = { granted: true; permit: Permit } | ({ granted: false } & Unavailability);

/** The state of a target, for operators. */
export interface HealthRow extends Pick<Target, "upstream" | "model"> {
  /** The worst state if it differs by client key. */
  state: "closed" | "open" | "half_open" | "cooling" | "quarantined";
  /**
   * True if a breaker is open or half-open and has no current trial. The breaker of a single key counts until a request
   * of another key succeeds.
   */
  awaits_trial: boolean;
  /** Number of client keys in this state; absent if the state is that of all keys. */
  keys?: number;
  /** Until when the target is unavailable, in Unix milliseconds. */
  until?: number;
  /** Failed requests in the window. */
  failures: number;
  /** All requests in the window. */
  samples: number;
  /** Failures since the last success. */
  consecutive_failures: number;
  /** Number of the last attempts, at most 20, regardless of their age. */
  recent_attempts: number;
  /** Number of the last attempts that were answered. */
  recent_answers: number;
  /** Median time to the first event, in milliseconds; absent if not measured. */
  first_ms?: number;
  /** Median speed of answers, in tokens per second; absent if not measured. */
  tokens_per_second?: number;
}

/** A change of a target's health, for the log and alerts. */
export interface HealthChange extends Pick<Target, "upstream" | "model"> {
  change: "opened" | "half_open" | "closed" | "key_refused" | "key_accepted";
  scope: "upstream" | "model" | "client_key";
  /** The client key if only one is affected. */
  key?: string;
  /** Time until the target is tried again, in milliseconds; 0 if it can be tried now. */
  forMs: number;
  /** True if the condition ends because no model has the target any more. */
  isRemoved?: true;
}

/** Result of a probe: the upstream answers, it refuses the gateway's key, or it does not answer. */
export type ProbeAnswer = "up" | "refused" | "down";

/** Sends a request without content of a client to an upstream; `undefined` if it has no address. Never rejects. */
export type UpstreamProbe = (upstream: string, signal: AbortSignal) => Promise<ProbeAnswer> | undefined;

/** Percentiles of a target's speed; `undefined` if it was not measured. */
export interface TargetSpeed {
  /** Returns the time to the first event that this share of the requests does not exceed, in milliseconds. */
  firstMs(share: number): number | undefined;
  /** Returns the tokens per second that this share of the requests reaches. */
  tokensPerSecond(share: number): number | undefined;
}

/** The public members of a health tracker, which tests may replace. */
export type Health = Pick<HealthTracker, keyof HealthTracker>;

/** Options of a health tracker. */
export interface HealthOptions {
  breaker: BreakerOptions;
  /** A monotonic clock, in milliseconds. */
  monotonic: () => number;
  /** Returns the Unix time in milliseconds. */
  now: () => number;
  /** Returns a random number from 0 to less than 1. */
  random: () => number;
  /** Absent: no upstream is probed. */
  probe?: UpstreamProbe;
  /** Absent: `setTimeout`. */
  later?: StartTimer;
  changed?: (change: HealthChange) => void;
}
