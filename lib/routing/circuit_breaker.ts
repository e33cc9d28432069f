/**
 * Circuit breakers of a target, for all client keys and for single ones. A breaker is closed, open for a time, then half-open,
 * when one request at a time tries the target.
 */
import type { HealthRow } from "./health.ts";
import { OutcomeWindow } from "./target_statistics.ts";

/** Time after which a trial without an outcome makes room for the next, in milliseconds. */
const TRIAL_MS = 30_000;
/** A breaker stays open for up to this many times its first time. */
const MAX_STEPS = 3;

/** Identifies a request that passed a breaker. */
export interface BreakerTicket {
  /** Number of changes of the breaker by then. */
  readonly epoch: number;
  /** Number of the trial; absent: the breaker was closed. */
  readonly trial?: number;
}

/** Times that a breaker stays open. */
export interface BreakerTimes {
  /** The first time, in milliseconds. */
  openMs: number;
  /** A breaker that opens within this time after it closed opens for longer, in milliseconds. */
  restMs: number;
}

/** A circuit breaker, closed at first. Times are milliseconds of a monotonic clock. */
export class CircuitBreaker {
  /** Number of its changes. */
  epoch = 0;
  /** The ticket of every request while it is closed. */
  #closed: BreakerTicket = { epoch: 0 };
  /** Open or half-open. */
  isOpen = false;
  /** End of its open time. */
  until = 0;
  #closedAt = -Infinity;
  /** Number of times it has opened without a long enough rest. */
  #step = 0;
  #trials = 0;
  /** The trial under way. */
  #trial: { number: number; since: number } | undefined;
  /** Client key of the last trial since it was closed, and when that trial ended. */
  #lastKey: string | undefined;
  #endedAt = 0;
  /** True if the breaker has refused another key since that trial began. */
  #othersWait = false;
  /** Time that the next trial is reserved for other keys, in milliseconds. */
  #turnMs = 0;
  /** Result of the last probe since it opened. */
  #probe: "up" | "down" | undefined;

  /** Open or half-open, and no trial is under way. */
  get awaitsTrial(): boolean {
    return this.isOpen && this.#trial === undefined;
  }

  /** True if the upstream has failed the last probe since the breaker opened. */
  get isDown(): boolean {
    return this.#probe === "down";
  }

  /**
   * Time until a request of a client key may pass; 0: now. The key of the last trial comes after other waiting keys.
   * @param early whether it may pass before the open time is over
   */
  waitMs(now: number, key: string, early = false): number {
    if (!this.isOpen) return 0;
    const ended = this.#trial === undefined ? this.#endedAt : this.#trial.since + TRIAL_MS;
    const from = Math.max(early ? 0 : this.until, ended);
    return Math.max(0, from + (this.#othersWait && key === this.#lastKey ? this.#turnMs : 0) - now);
  }

  /**
   * Returns true if a request may pass although other targets are up: the breaker is closed, or its upstream has
   * answered a probe.
   */
  mayLead(now: number, key: string): boolean {
    return !this.isOpen || (this.#probe === "up" && this.waitMs(now, key) === 0);
  }

  /** Lets a request pass: only where `waitMs` is 0. */
  enter(now: number, key: string): BreakerTicket {
    if (!this.isOpen) return this.#closed;
    this.#trial = { number: ++this.#trials, since: now };
    this.#lastKey = key;
    this.#othersWait = false;
    return { epoch: this.epoch, trial: this.#trials };
  }

  /** Notes that this breaker alone has refused a request of a key. */
  refused(key: string): void {
    if (this.#lastKey !== undefined && key !== this.#lastKey) this.#othersWait = true;
  }

  /** Returns true if the breaker has not changed since the request passed it. */
  isCurrent({ epoch }: BreakerTicket): boolean {
    return epoch === this.epoch;
  }

  /** Returns true if the request is the current trial: its failure opens the breaker again. */
  isTrial(ticket: BreakerTicket): boolean {
    return this.isCurrent(ticket) && ticket.trial !== undefined && ticket.trial === this.#trial?.number;
  }

  /** Returns true if the request was a trial: its success counts, however late. */
  wasTrial(ticket: BreakerTicket): boolean {
    return this.isCurrent(ticket) && ticket.trial !== undefined;
  }

  /** Allows another trial after one without a result. */
  giveBack(ticket: BreakerTicket, now: number): void {
    if (this.isTrial(ticket)) this.#endTrial(now);
  }

  /** Opens it, and returns for how long. @param jitter varies a time at random */
  open(now: number, { openMs, restMs }: BreakerTimes, jitter: (ms: number) => number): number {
    const isRepeated = this.isOpen || now - this.#closedAt < restMs;
    this.#step = isRepeated ? Math.min(MAX_STEPS, this.#step + 1) : 1;
    const forMs = jitter(openMs * this.#step);
    this.epoch++;
    this.isOpen = true;
    this.#probe = undefined;
    this.until = now + forMs;
    this.#turnMs = openMs;
    this.#endTrial(now);
    return forMs;
  }

  close(now: number): void {
    this.#closed = { epoch: ++this.epoch };
    this.isOpen = false;
    this.#closedAt = now;
    this.#endTrial(now);
    this.#lastKey = undefined;
    this.#othersWait = false;
  }

  /** Notes the result of a probe of the upstream. */
  probed(found: "up" | "down"): void {
    this.#probe = found;
  }

  #endTrial(now: number): void {
    if (this.#trial === undefined) return;
    this.#endedAt = Math.min(now, this.#trial.since + TRIAL_MS);
    this.#trial = undefined;
  }
}

/** States of a scope, from the best to the worst. */
const SEVERITY: readonly HealthRow["state"][] = ["closed", "half_open", "cooling", "open"];

/** State of a scope, and the end of its pause by the monotonic clock, in milliseconds. */
export interface ScopeState {
  state: HealthRow["state"];
  until: number;
}

/** A breaker with the outcomes it counts and the pause that the target has asked for. */
export class BreakerScope {
  /** The client key that it is for; absent: all. */
  readonly key: string | undefined;
  readonly breaker = new CircuitBreaker();
  coolUntil = 0;
  /** Requests that count, and how many of them failed. */
  outcomes: OutcomeWindow;

  /** @param windowMs time that outcomes count for, in milliseconds */
  constructor(key: string | undefined, windowMs: number) {
    this.key = key;
    this.outcomes = new OutcomeWindow(windowMs);
  }

  /** Closes the breaker after the success of a trial. @returns false where the request was no trial of it */
  close(ticket: BreakerTicket, now: number): boolean {
    if (!this.breaker.wasTrial(ticket)) return false;
    this.breaker.close(now);
    this.outcomes.clear();
    this.outcomes.add(false, now);
    return true;
  }

  /** State and pause. */
  state(now: number): ScopeState {
    const { breaker, coolUntil } = this;
    if (breaker.isOpen) return { state: breaker.until > now ? "open" : "half_open", until: breaker.until };
    return { state: coolUntil > now ? "cooling" : "closed", until: coolUntil };
  }
}

/** Compares states, the worst first. */
function compareSeverity(a: ScopeState, b: ScopeState): number {
  return SEVERITY.indexOf(b.state) - SEVERITY.indexOf(a.state);
}

/** Most client keys whose failures at a target are kept apart. */
const MAX_KEYS = 32;

/**
 * Scopes of single client keys at one target, for keys whose requests failed there or met a limit: the content of a request
 * can be the reason, so it counts against its own key first.
 */
export class ClientScopes {
  readonly byKey = new Map<string, BreakerScope>();
  #windowMs: number;

  /** @param windowMs time that outcomes count for, in milliseconds */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** The scope of a key, made where it has none. Where there are too many, an idle one goes, or else the oldest. */
  findOrAdd(key: string, now: number): BreakerScope {
    const found = this.byKey.get(key);
    if (found !== undefined) return found;
    if (this.byKey.size >= MAX_KEYS) {
      const isIdle = ({ breaker, coolUntil }: BreakerScope) => !breaker.isOpen && coolUntil <= now;
      const [first] = [...this.byKey].find(([, scope]) => isIdle(scope)) ?? [...this.byKey][0] ?? [];
      if (first !== undefined) this.byKey.delete(first);
    }
    const added = new BreakerScope(key, this.#windowMs);
    this.byKey.set(key, added);
    return added;
  }

  /** The outcomes of the key with the most failures. */
  readWorst(now: number): { samples: number; failures: number } {
    const [worst = { samples: 0, failures: 0 }] = [...this.byKey.values()].map(({ outcomes }) => outcomes.read(now))
      .sort((a, b) => b.failures - a.failures || a.samples - b.samples);
    return worst;
  }

  /** End of the longest pause that the target has asked of another key than this one; 0 where there is none. */
  othersCoolUntil(key: string, now: number): number {
    let until = 0;
    for (const { key: other, coolUntil } of this.byKey.values()) {
      if (other !== key && coolUntil > now) until = Math.max(until, coolUntil);
    }
    return until;
  }

  /** The worst state, and the number of keys that it is for; `undefined` where all are closed. */
  worstState(now: number): ScopeState & { keys: number } | undefined {
    const [worst, ...others] = [...this.byKey.values()].map((scope) => scope.state(now))
      .filter(({ state }) => state !== "closed")
      .sort(compareSeverity);
    if (worst === undefined) return undefined;
    return { ...worst, keys: 1 + others.filter(({ state }) => state === worst.state).length };
  }

  /** Returns true if the breaker of a key is open and no request tries the target for the key. */
  get awaitsTrial(): boolean {
    return [...this.byKey.values()].some(({ breaker }) => breaker.awaitsTrial);
  }

  /** Begins to count anew, over another time. */
  restart(windowMs: number): void {
    this.#windowMs = windowMs;
    for (const scope of this.byKey.values()) scope.outcomes = new OutcomeWindow(windowMs);
  }
}
