/**
 * The health of targets. A target is an upstream with one of its models: each has a circuit breaker, so that the limit
 * or the failure of one model leaves the others alone. The gateway's key belongs to the upstream, for all models.
 *
 * A request itself can make an upstream answer with an error. So its outcome counts for the client key that sent it,
 * and for every key where other keys have failed as well, or where no request can be the cause.
 */
import type { Model, Target } from "../catalog/model.ts";
import type { BreakerTicket } from "./circuit_breaker.ts";
import type { RetryBudget } from "./target_statistics.ts";

/** When a breaker opens, and for how long. */
export interface BreakerOptions {
  /** Time that outcomes count for, in milliseconds. */
  windowMs: number;
  /** With fewer requests in the window their share of failures decides nothing. */
  leastSamples: number;
  /** Share of failures, from 0 to 1, that opens it. */
  failureShare: number;
  /** Failures of any kind, one after another, that open it at once. */
  consecutiveFailures: number;
  /** Failures to connect, one after another, that open it at once. */
  connectFailures: number;
  /** Time it stays open, in milliseconds: twice that when it opens again soon, then three times. */
  openMs: number;
}

/** Outcome of a request at a target. */
export type TargetOutcome =
  /** It gave an answer, or began one. */
  | { type: "success" }
  | { type: "failure" }
  /** No connection could be made. */
  | { type: "unreachable" }
  /** Its limit of requests is reached: no failure. */
  | { type: "limited"; retryAfterMs?: number | undefined }
  /** It is overloaded: a failure, and it may say for how long. */
  | { type: "busy"; retryAfterMs?: number | undefined }
  /** It answered 401: a probe finds out whether it refuses the gateway's key. */
  | { type: "refused" }
  /** It says nothing about the target: a mistake of the client's, or a client that disconnected. */
  | { type: "neither" };

/** Identifies a target. */
export interface TargetKey extends Pick<Target, "upstream" | "model"> {
  /** The model row whose health is kept apart; absent: rows with the same upstream and model share one. */
  readonly row?: string;
}

/** Names a target. Names of upstreams hold no slash. */
export function targetName(target: TargetKey): string {
  return `${target.upstream}/${targetModelName(target)}`;
}

/** Names the model of a target for operators, with its row where its health is kept apart. */
export function targetModelName({ model, row }: TargetKey): string {
  return row === undefined ? model : `${row}:${model}`;
}

/** A request for a permit: the target, its model, and the client key. */
export interface PermitRequest {
  model: { readonly id: Model["id"]; readonly targets: readonly TargetKey[] };
  target: TargetKey;
  key: string;
  /** True: a trial may begin although the breaker is still open, as the request has no other target left. */
  early?: boolean;
}

/** Lets a request go to a target. Its outcome has to be reported. */
export interface Permit {
  readonly target: TargetKey;
  readonly key: string;
  /** True if it tries a target whose breaker is half-open. */
  readonly isTrial: boolean;
  /** Tickets of the breaker for all keys, and of the one for this key, if there is one. */
  readonly tickets: { readonly all: BreakerTicket; readonly client: BreakerTicket | undefined };
}

/**
 * Why a target must not be asked now: its breaker is open, it has asked for a pause, or it refuses the gateway's key.
 */
export type UnavailableReason = "open" | "cooling" | "quarantined";

/** Why a target must not be asked now, and for how long, as far as is known. */
export interface Unavailability {
  why: UnavailableReason;
  waitMs: number;
}

/** Permit for an attempt at a target, or the reason against it. */
export type PermitDecision = { granted: true; permit: Permit } | ({ granted: false } & Unavailability);

/** The state of a target. */
export interface HealthRow extends Pick<Target, "upstream" | "model"> {
  /** The worst, where it differs by client key. */
  state: "closed" | "open" | "half_open" | "cooling" | "quarantined";
  /**
   * Returns true if a breaker is open or half-open and no request tries the target. The breaker of a single key counts
   * until a request of another key succeeds.
   */
  awaits_trial: boolean;
  /** Number of client keys that the state is for; absent: all. */
  keys?: number;
  /** Until when it is not asked, in Unix milliseconds. */
  until?: number;
  /** Failures among the requests of the window, and the number of these. */
  failures: number;
  samples: number;
  /** Failures since the last success. */
  consecutive_failures: number;
  /** The last attempts, at most 20 and however long ago, and how many of them were answered. */
  recent_attempts: number;
  recent_answers: number;
  /** Medians: time to the first event in milliseconds, and tokens of the answer per second. */
  first_ms?: number;
  tokens_per_second?: number;
}

/** A change that an operator may want to know of. */
export interface HealthChange extends Pick<Target, "upstream" | "model"> {
  change: "opened" | "half_open" | "closed" | "key_refused" | "key_accepted";
  /** It concerns all models of the upstream, the model, or the model for one client key alone. */
  scope: "upstream" | "model" | "client_key";
  /** The client key, where it concerns one alone. */
  key?: string;
  /** Time until it is asked again, in milliseconds; 0 where it is asked now. */
  forMs: number;
}

/** The upstream answers, it refuses the gateway's key, or it does not answer. */
export type ProbeAnswer = "up" | "refused" | "down";

/** Asks an upstream without any content of a client; `undefined` where it has no address. Never rejects. */
export type UpstreamProbe = (upstream: string, signal: AbortSignal) => Promise<ProbeAnswer> | undefined;

/** Percentiles of a target's speed; `undefined` where it was not measured. */
export interface TargetSpeed {
  /** Time to the first event that this share of its requests does not exceed, in milliseconds. */
  firstMs(share: number): number | undefined;
  /** Tokens per second that this share of its requests reaches. */
  tokensPerSecond(share: number): number | undefined;
}

/** Tracks the health of targets. */
export interface Health {
  /**
   * Asks for a permit for one request.
   * @param now by the monotonic clock, for callers that have just read it
   */
  acquirePermit(request: PermitRequest, now?: number): PermitDecision;
  /** Why a permit would be refused now; `undefined` where it would be granted. */
  unavailability(target: TargetKey, key: string): Unavailability | undefined;
  /**
   * Returns true if a target may be tried before others that are up: after a failure, not until a probe is answered.
   */
  isUp(target: TargetKey, key: string): boolean;
  /** The budget of retries at a target, which all requests share. */
  retryBudget(target: TargetKey): RetryBudget;
  /** Returns true if its last outcome was a failure, of this key or of several others. */
  isFailing(target: TargetKey, key: string): boolean;
  /** Counts an outcome. A request that began well and broke off is reported twice. */
  report(permit: Permit, outcome: TargetOutcome): void;
  /** Counts a measured speed. */
  recordSpeed(target: TargetKey, measured: { firstMs?: number; tokensPerSecond?: number }): void;
  speed(target: TargetKey): TargetSpeed;
  snapshot(): HealthRow[];
  /** Applies another configuration. Outcomes stay, and refused keys are probed anew. */
  reconfigure(configured: { breaker: BreakerOptions; probe?: UpstreamProbe }): void;
  /** Probes refused keys at once. */
  renewKeys(): void;
  /** Cancels timers and probes. */
  close(): void;
}

/** Parts of a health tracker. */
export interface HealthOptions {
  breaker: BreakerOptions;
  /** Milliseconds of a monotonic clock. */
  monotonic: () => number;
  /** Unix time in milliseconds. */
  now: () => number;
  /** Returns a number from 0 up to, not including, 1. */
  random: () => number;
  /** Absent: no upstream is probed. */
  probe?: UpstreamProbe;
  /**
   * Runs something later, without keeping the process alive, and returns a function that cancels it; absent: timers.
   */
  later?: (ms: number, run: () => void) => () => void;
  changed?: (change: HealthChange) => void;
}
