/**
 * The health of targets. A target is an upstream with one of its models: each has a breaker of its own, so that the limit
 * or the failure of one model leaves the others alone. Its key is the upstream's, for all models.
 */
import type { Model, Target } from "../catalog/model.ts";
import type { Ticket } from "./gate.ts";

/** When a breaker opens, and for how long. */
export interface BreakerOptions {
  /** Time that outcomes count for, in milliseconds. */
  windowMs: number;
  /** Fewer requests within the window decide nothing. */
  leastSamples: number;
  /** Share of failures, from 0 to 1, from which on it opens. */
  failureShare: number;
  /** Failures to connect, one after another, that open it at once. */
  connectFailures: number;
  /** Time it stays open for, in milliseconds: twice that when it opens again soon, then three times. */
  openMs: number;
}

/** What became of a request at a target. */
export type Outcome =
  /** It gave an answer, or began one. */
  | { type: "success" }
  | { type: "failure" }
  /** No connection could be made. */
  | { type: "unreachable" }
  /** Its limit of requests is reached: no failure. */
  | { type: "limited"; retryAfterMs?: number | undefined }
  /** It is overloaded: a failure, and it may say for how long. */
  | { type: "busy"; retryAfterMs?: number | undefined }
  /** The upstream does not accept its key at all, or not for this model. */
  | { type: "refused"; scope: "upstream" | "model" }
  /** It says nothing about the target: a mistake of the client's, or a client that left. */
  | { type: "neither" };

/** What a target is to health. */
export type Place = Pick<Target, "upstream" | "model">;

/** A target, as one of those of a model. */
export interface Asked {
  model: { readonly id: Model["id"]; readonly targets: readonly Place[] };
  target: Place;
}

/** A request that may go to a target. Its outcome is to be reported. */
export interface Pass {
  readonly place: Place;
  /** Of the upstream's key, of the key for this model, of the breaker. */
  readonly tickets: Readonly<Record<Guard, Ticket>>;
}

type Guard = "upstream" | "model" | "breaker";

/** Why a target is not to be asked now. */
export type Away = "open" | "cooling" | "quarantined";

/** Why a target is not to be asked now, and for how long, as far as is known. */
export interface Absence {
  why: Away;
  waitMs: number;
}

/** Whether a target may be asked. */
export type Admission = { admitted: true; pass: Pass } | ({ admitted: false } & Absence);

/** How a target stands. */
export interface HealthRow extends Place {
  state: "closed" | "open" | "half_open" | "cooling" | "quarantined";
  /** Until when it is not asked, in Unix milliseconds. */
  until?: number;
  /** Failures among the requests of the last while, and all of those. */
  failures: number;
  samples: number;
  /** Medians: time to the first event in milliseconds, and tokens of the answer per second. */
  first_ms?: number;
  tokens_per_second?: number;
}

/** A change that an operator may want to know of. */
export interface HealthChange extends Place {
  change: "opened" | "closed" | "key_refused" | "key_accepted";
  /** `upstream`: it concerns all models there. */
  scope: "upstream" | "model";
  /** Time it is not asked for, in milliseconds; 0 where it is asked again. */
  forMs: number;
}

/** What is known of a target's speed. */
export interface Speed {
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
  admit(asked: Asked, now?: number): Admission;
  /** Why it could not be asked now; `undefined` where it could. Takes nothing. */
  away(place: Place): Absence | undefined;
  /** Tells what became of a request. A request that began well and broke off is reported twice. */
  report(pass: Pass, outcome: Outcome): void;
  /** Tells how fast a target was. */
  measure(place: Place, measured: { firstMs?: number; tokensPerSecond?: number }): void;
  speed(place: Place): Speed;
  snapshot(): HealthRow[];
  /** Takes other numbers for breakers; what is known of targets stays. */
  obey(breaker: BreakerOptions): void;
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
  changed?: (change: HealthChange) => void;
}
