/**
 * The health of targets. A target is an upstream with one of its models: each has a circuit breaker of its own, so that the
 * limit or the failure of one model leaves the others alone. The gateway's key is the upstream's, for all models.
 *
 * What a request asks for can make an upstream answer with an error, so that the outcome of a request counts for the client
 * key that sent it. It counts for every key where other keys have failed as well, or where no request can be the cause.
 */
import type { Model, Target } from "../catalog/model.ts";
import type { BreakerTicket } from "./circuit_breaker.ts";

/** When a breaker opens, and for how long. */
export interface BreakerOptions {
  /** Time that outcomes count for, in milliseconds. */
  windowMs: number;
  /** Fewer requests within the window decide nothing by their share of failures. */
  leastSamples: number;
  /** Share of failures, from 0 to 1, from which on it opens. */
  failureShare: number;
  /** Failures of any kind, one after another, that open it at once. */
  consecutiveFailures: number;
  /** Failures to connect, one after another, that open it at once. */
  connectFailures: number;
  /** Time it stays open for, in milliseconds: twice that when it opens again soon, then three times. */
  openMs: number;
}

/** What became of a request at a target. */
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
  /** It says nothing about the target: a mistake of the client's, or a client that left. */
  | { type: "neither" };

/** What a target is to health. */
export interface TargetKey extends Pick<Target, "upstream" | "model"> {
  /** The model row it is kept apart by; absent: rows with the same upstream and model share what is known of it. */
  readonly row?: string;
}

/** A target, as one of those of a model, and the client key whose request may go there. */
export interface PermitRequest {
  model: { readonly id: Model["id"]; readonly targets: readonly TargetKey[] };
  target: TargetKey;
  key: string;
  /** True: as a trial also while the breaker is open, for a request that has no other target left. */
  early?: boolean;
}

/** A request that may go to a target. Its outcome is to be reported. */
export interface Permit {
  readonly place: TargetKey;
  readonly key: string;
  /** Whether it tries a target whose breaker is half-open. */
  readonly isTrial: boolean;
  /** Of the breaker for all keys, and of the one for this key, if there is one. */
  readonly tickets: { readonly all: BreakerTicket; readonly own: BreakerTicket | undefined };
}

/** Why a target is not to be asked now. */
export type UnavailableReason = "open" | "cooling" | "quarantined";

/** Why a target is not to be asked now, and for how long, as far as is known. */
export interface Unavailability {
  why: UnavailableReason;
  waitMs: number;
}

/** Whether a target may be asked. */
export type PermitDecision = { admitted: true; pass: Permit } | ({ admitted: false } & Unavailability);

/** How a target stands. */
export interface HealthRow extends Pick<Target, "upstream" | "model"> {
  /** Where it differs by client key, the worst. */
  state: "closed" | "open" | "half_open" | "cooling" | "quarantined";
  /** Client keys that the state is for; absent: for all. */
  keys?: number;
  /** Until when it is not asked, in Unix milliseconds. */
  until?: number;
  /** Failures among the requests of the last while, and all of those. */
  failures: number;
  samples: number;
  /** Failures since the last success. */
  consecutive_failures: number;
  /** Medians: time to the first event in milliseconds, and tokens of the answer per second. */
  first_ms?: number;
  tokens_per_second?: number;
}

/** A change that an operator may want to know of. */
export interface HealthChange extends Pick<Target, "upstream" | "model"> {
  change: "opened" | "half_open" | "closed" | "key_refused" | "key_accepted";
  /** What it concerns: all models of the upstream, the model, or the model for one client key alone. */
  scope: "upstream" | "model" | "client_key";
  /** The client key, where it concerns one alone. */
  key?: string;
  /** Time it is not asked for, in milliseconds; 0 where it is asked again. */
  forMs: number;
}

/** What a probe found: the upstream answers, it refuses the gateway's key, or it does not answer. */
export type ProbeAnswer = "up" | "refused" | "down";

/** Asks an upstream something that carries nothing of a client's; `undefined` where there is nobody to ask. Never rejects. */
export type UpstreamProbe = (upstream: string, signal: AbortSignal) => Promise<ProbeAnswer> | undefined;

/** What is known of a target's speed. */
export interface TargetSpeed {
  /** Time to the first event that this share of its requests does not exceed, in milliseconds. */
  firstMs(share: number): number | undefined;
  /** Tokens per second that this share of its requests reaches. */
  tokensPerSecond(share: number): number | undefined;
}

/** Keeps count of the health of targets. */
export interface Health {
  /**
   * Whether the target may be asked now. Where it may, the outcome must be reported.
   * @param now by the clock that only grows, of those who have just read it
   */
  admit(asked: PermitRequest, now?: number): PermitDecision;
  /** Why it could not be asked now; `undefined` where it could. Takes nothing. */
  away(place: TargetKey, key: string): Unavailability | undefined;
  /** Whether it can be asked before others that are up: not where it has failed and no probe has been answered since. */
  isUp(place: TargetKey, key: string): boolean;
  /** Whether its last outcome was a failure, of this key or of several others. */
  isFailing(place: TargetKey, key: string): boolean;
  /** Tells what became of a request. A request that began well and broke off is reported twice. */
  report(pass: Permit, outcome: TargetOutcome): void;
  /** Tells how fast a target was. */
  measure(place: TargetKey, measured: { firstMs?: number; tokensPerSecond?: number }): void;
  speed(place: TargetKey): TargetSpeed;
  snapshot(): HealthRow[];
  /** Takes another configuration; what is known of targets stays, and refused keys are probed anew. */
  obey(configured: { breaker: BreakerOptions; probe?: UpstreamProbe }): void;
  /** Ends all that is still to happen by itself. */
  close(): void;
}

/** What health is made of. */
export interface HealthOptions {
  breaker: BreakerOptions;
  /** Milliseconds that only grow. */
  monotonic: () => number;
  /** Unix time in milliseconds. */
  now: () => number;
  /** Numbers from 0 up to, not including, 1. */
  random: () => number;
  /** Absent: there is nobody to ask. */
  probe?: UpstreamProbe;
  /** Runs something later, without keeping the process alive. Returns what cancels it; absent: real timers. */
  later?: (ms: number, run: () => void) => () => void;
  changed?: (change: HealthChange) => void;
}
