/**
 * Circuit breakers of a target, for all client keys and for single keys. A breaker is closed, or open for a time, or
 * then half-open: one request at a time tries the target. `TargetHealth` in target_health.ts decides when it opens.
 */
import type { HealthRow } from "./health.ts";
import { OutcomeWindow } from "./target_statistics.ts";

/** Time after which a trial without an outcome no longer blocks the next trial, in milliseconds. */
const TRIAL_MS = 30_000;
/** Largest multiple of the first open time for which a breaker stays open. */
const MAX_OPEN_FACTOR = 3;

/** Identifies a request that passed a breaker. */
export interface BreakerTicket {
  /** Value of `CircuitBreaker.epoch` when the request passed. */
  readonly epoch: number;
  /** Number of the trial; absent if the breaker was closed. */
  readonly trial?: number;
}

/** A circuit breaker, closed at first. Times are milliseconds of a monotonic clock. */
export class CircuitBreaker {
  /** Number of state changes so far. */
  epoch = 0;
  /** The ticket that all requests share while the breaker is closed. */
  #closedTicket: BreakerTicket = { epoch: 0 };
  /** True if the breaker is open or half-open. */
  isOpen = false;
  /** End of the open time. */
  until = 0;
  #closedAt = -Infinity;
  /** Multiple of the first open time: how often it has opened in quick succession, up to `MAX_OPEN_FACTOR`. */
  #openFactor = 0;
  #trials = 0;
  #trial: { number: number; since: number } | undefined;
  /** Client key of the last trial since the breaker was closed. */
  #lastKey: string | undefined;
  #trialEndedAt = 0;
  /** True if the breaker has refused another key since that trial began. */
  #othersWait = false;
  /** Time for which the next trial is reserved for other waiting keys, in milliseconds. */
  #reservedMs = 0;
  /** Result of the last probe since the breaker opened. */
  #probe: "up" | "down" | undefined;

  /** True if the breaker is open or half-open and there is no current trial. */
  get awaitsTrial(): boolean {
    return this.isOpen && this.#trial === undefined;
  }

  /** True if the upstream has failed the last probe since the breaker opened. */
  get isDown(): boolean {
    return this.#probe === "down";
  }

  /**
   * Returns the time until a request of a client key may pass, in milliseconds; 0 if it may pass now. If other keys
   * wait, they get the next trial before the key that had the last one.
   * @param early true if the request may pass before the open time is over
   */
  waitMs(now: number, key: string, early = false): number {
    if (!this.isOpen) return 0;
    const trialEnd = this.#trial === undefined ? this.#trialEndedAt : this.#trial.since + TRIAL_MS;
    const nextTrial = Math.max(early ? 0 : this.until, trialEnd);
    return Math.max(0, nextTrial + (this.#othersWait && key === this.#lastKey ? this.#reservedMs : 0) - now);
  }

  /**
   * Returns true if a request may use this target before other available ones: the breaker is closed, or the upstream
   * has answered a probe.
   */
  mayLead(now: number, key: string): boolean {
    return !this.isOpen || (this.#probe === "up" && this.waitMs(now, key) === 0);
  }

  /** Lets a request pass. May be called only if `waitMs` returns 0. */
  enter(now: number, key: string): BreakerTicket {
    if (!this.isOpen) return this.#closedTicket;
    this.#trial = { number: ++this.#trials, since: now };
    this.#lastKey = key;
    this.#othersWait = false;
    return { epoch: this.epoch, trial: this.#trials };
  }

  /** Records that this breaker alone has refused a request of a key. */
  refused(key: string): void {
    if (this.#lastKey !== undefined && key !== this.#lastKey) this.#othersWait = true;
  }

  /** Returns true if the breaker has not changed since the request passed it. */
  isCurrent({ epoch }: BreakerTicket): boolean {
    return epoch === this.epoch;
  }

  /** Returns true if the request is the current trial, whose failure opens the breaker again. */
  isTrial(ticket: BreakerTicket): boolean {
    return this.isCurrent(ticket) && ticket.trial !== undefined && ticket.trial === this.#trial?.number;
  }

  /** Returns true if the request was a trial. Its success counts even if it comes late. */
  wasTrial(ticket: BreakerTicket): boolean {
    return this.isCurrent(ticket) && ticket.trial !== undefined;
  }

  /** Allows another trial after one without a result. */
  giveBack(ticket: BreakerTicket, now: number): void {
    if (this.isTrial(ticket)) this.#endTrial(now);
  }

  /**
   * Opens the breaker.
   * @param times `openMs`: the first open time; a breaker that opens again within `restMs` after it closed stays open
   * for longer
   * @param jitter varies a time at random
   * @returns the open time in milliseconds
   */
  open(now: number, { openMs, restMs }: { openMs: number; restMs: number }, jitter: (ms: number) => number): number {
    const isSoon = this.isOpen || now - this.#closedAt < restMs;
    this.#openFactor = isSoon ? Math.min(MAX_OPEN_FACTOR, this.#openFactor + 1) : 1;
    const forMs = jitter(openMs * this.#openFactor);
    this.epoch++;
    this.isOpen = true;
    this.#probe = undefined;
    this.until = now + forMs;
    this.#reservedMs = openMs;
    this.#endTrial(now);
    return forMs;
  }

  close(now: number): void {
    this.#closedTicket = { epoch: ++this.epoch };
    this.isOpen = false;
    this.#closedAt = now;
    this.#endTrial(now);
    this.#lastKey = undefined;
    this.#othersWait = false;
  }

  /** Records the result of a probe of the upstream. */
  probed(result: "up" | "down"): void {
    this.#probe = result;
  }

  #endTrial(now: number): void {
    if (this.#trial === undefined) return;
    this.#trialEndedAt = Math.min(now, this.#trial.since + TRIAL_MS);
    this.#trial = undefined;
  }
}

/** States of a scope, from the best to the worst. */
const SEVERITY: readonly HealthRow["state"][] = ["closed", "half_open", "cooling", "open"];

/** State of a scope, and the end of its open time or pause by the monotonic clock, in milliseconds. */
export interface ScopeState {
  state: HealthRow["state"];
  until: number;
}

/**
 * A breaker for one client key or for all keys, with the outcomes that it counts and the pause that the target asked
 * for.
 */
export class BreakerScope {
  /** The client key; undefined if the scope is for all keys. */
  readonly key: string | undefined;
  readonly breaker = new CircuitBreaker();
  /** End of the pause; 0 if there is none. */
  coolUntil = 0;
  /** Recent requests, and how many of them failed. */
  outcomes: OutcomeWindow;

  /** @param windowMs how long an outcome counts, in milliseconds */
  constructor(key: string | undefined, windowMs: number) {
    this.key = key;
    this.outcomes = new OutcomeWindow(windowMs);
  }

  /** Closes the breaker after the success of a trial. @returns false if the request was not a trial of this breaker */
  close(ticket: BreakerTicket, now: number): boolean {
    if (!this.breaker.wasTrial(ticket)) return false;
    this.breaker.close(now);
    this.outcomes.clear();
    this.outcomes.add(false, now);
    return true;
  }

  /** Returns the state of the breaker, or of the pause if the breaker is closed. */
  state(now: number): ScopeState {
    const { breaker, coolUntil } = this;
    if (breaker.isOpen) return { state: breaker.until > now ? "open" : "half_open", until: breaker.until };
    return { state: coolUntil > now ? "cooling" : "closed", until: coolUntil };
  }
}

/** Maximum number of client keys with a scope of their own at one target. */
const MAX_KEYS = 32;

/**
 * Scopes of single client keys at one target, for keys whose requests failed there or reached a limit. The content of a
 * request can cause its failure, so the failure counts first against its own key.
 */
export class ClientScopes {
  readonly byKey = new Map<string, BreakerScope>();
  #windowMs: number;

  /** @param windowMs how long an outcome counts, in milliseconds */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /**
   * Returns the scope of a key, and adds one if necessary. If there are too many, an idle one or the oldest is removed.
   */
  findOrAdd(key: string, now: number): BreakerScope {
    const existing = this.byKey.get(key);
    if (existing !== undefined) return existing;
    if (this.byKey.size >= MAX_KEYS) {
      const isIdle = ({ breaker, coolUntil }: BreakerScope) => !breaker.isOpen && coolUntil <= now;
      const [removed] = [...this.byKey].find(([, scope]) => isIdle(scope)) ?? [...this.byKey][0] ?? [];
      if (removed !== undefined) this.byKey.delete(removed);
    }
    const added = new BreakerScope(key, this.#windowMs);
    this.byKey.set(key, added);
    return added;
  }

  /** Returns the outcomes of the key with the most failures. */
  readWorst(now: number): { samples: number; failures: number } {
    const [worst = { samples: 0, failures: 0 }] = [...this.byKey.values()].map(({ outcomes }) => outcomes.read(now))
      .sort((a, b) => b.failures - a.failures || a.samples - b.samples);
    return worst;
  }

  /** Returns the end of the longest current pause of the other keys; 0 if none is paused. */
  othersCoolUntil(key: string, now: number): number {
    let until = 0;
    for (const { key: other, coolUntil } of this.byKey.values()) {
      if (other !== key && coolUntil > now) until = Math.max(until, coolUntil);
    }
    return until;
  }

  /** Returns the worst state and the number of keys in that state; `undefined` if all are closed. */
  worstState(now: number): ScopeState & { keys: number } | undefined {
    const [worst, ...others] = [...this.byKey.values()].map((scope) => scope.state(now))
      .filter(({ state }) => state !== "closed")
      .sort((a, b) => SEVERITY.indexOf(b.state) - SEVERITY.indexOf(a.state));
    if (worst === undefined) return undefined;
    return { ...worst, keys: 1 + others.filter(({ state }) => state === worst.state).length };
  }

  /** True if the breaker of any key is open or half-open and has no current trial. */
  get awaitsTrial(): boolean {
    return [...this.byKey.values()].some(({ breaker }) => breaker.awaitsTrial);
  }

  /** Discards all outcomes, and counts over another time. */
  restart(windowMs: number): void {
    this.#windowMs = windowMs;
    for (const scope of this.byKey.values()) scope.outcomes = new OutcomeWindow(windowMs);
  }
}
