/** The health of one target: a breaker for all client keys, breakers for single keys, and statistics. */
import {
  BreakerScope,
  type BreakerTicket,
  type CircuitBreaker,
  ClientScopes,
  type ScopeState,
} from "./circuit_breaker.ts";
import { FailureStreak, OutcomeWindow, RecentAttempts, RetryBudget, SpeedSamples } from "./target_statistics.ts";
import type { BreakerOptions, Permit, TargetKey } from "./health.ts";

/** Longest pause that is accepted from a target at its limit, in milliseconds. */
const MAX_COOL_MS = 60_000;

/** Health of one target. Times are milliseconds of a monotonic clock. */
export class TargetHealth {
  readonly target: TargetKey;
  readonly all: BreakerScope;
  readonly clients: ClientScopes;
  readonly recent = new RecentAttempts();
  readonly firstMs = new SpeedSamples();
  readonly tokensPerSecond = new SpeedSamples();
  readonly retryBudget = new RetryBudget();
  /** True once no model uses the target any more. */
  isRemoved = false;
  /** Failures since the last success. */
  streak = new FailureStreak();
  #lastSuccess: Permit | undefined;
  /** The streak that the last success ended. It is restored if that answer breaks off. */
  #endedStreak: FailureStreak | undefined;
  #connectFailures = 0;
  /**
   * The client key whose trial has failed since the breaker opened, without a sign that the target fails for other
   * keys.
   */
  #failedTrial: string | undefined;
  /**
   * True if the target certainly fails for all keys: it cannot be reached, or a trial of a key without earlier failures
   * has failed. While it is false, the requests of the failing keys may be the cause, even if these keys are several.
   */
  #isConfirmed = false;

  /** @param windowMs how long an outcome counts, in milliseconds */
  constructor({ upstream, model, row }: TargetKey, windowMs: number) {
    this.target = { upstream, model, ...(row !== undefined && { row }) };
    this.all = new BreakerScope(undefined, windowMs);
    this.clients = new ClientScopes(windowMs);
  }

  /** Returns how long a request of a key must wait: for the target's pauses, and for the breakers. In milliseconds. */
  waits(key: string, { now, early }: { now: number; early?: boolean | undefined }): { coolMs: number; openMs: number } {
    const keyScope = this.clients.byKey.get(key);
    return {
      coolMs: Math.max(0, this.all.coolUntil - now, (keyScope?.coolUntil ?? 0) - now),
      openMs: Math.max(this.#waitMs(key, { now, early }), keyScope?.breaker.waitMs(now, key, early) ?? 0),
    };
  }

  /**
   * Returns how long a request of a key must wait for the breaker for all keys, in milliseconds. While only some keys
   * are known to fail, the others need not wait for the end of the open time: a trial of one of them decides.
   */
  #waitMs(key: string, { now, early }: { now: number; early?: boolean | undefined }): number {
    const { breaker } = this.all;
    if (!breaker.isOpen || this.#isConfirmed) return breaker.waitMs(now, key, early);
    const ms = breaker.waitMs(now, key, early || this.#isBlameless(key, now));
    // The trial decides within the open time, as a rule.
    return breaker.until > now ? Math.min(ms, breaker.until - now) : ms;
  }

  /** Returns true if no request of a key has failed recently. */
  #isBlameless(key: string, now: number): boolean {
    const failures = this.clients.byKey.get(key)?.outcomes.read(now).failures ?? 0;
    return failures === 0 && this.streak.of(key) === 0;
  }

  /** Lets a request pass. May be called only if `waits` returns zeros. */
  enter(key: string, now: number): Permit {
    const tickets = {
      all: this.all.breaker.enter(now, key),
      client: this.clients.byKey.get(key)?.breaker.enter(now, key),
    };
    const isTrial = tickets.all.trial !== undefined || tickets.client?.trial !== undefined;
    return { target: this.target, key, isTrial, tickets };
  }

  /** Tells the breaker for all keys that a request was refused, if no other breaker refused it. */
  noteRefusal(key: string, { now, early }: { now: number; early?: boolean | undefined }): void {
    if ((this.clients.byKey.get(key)?.breaker.waitMs(now, key, early) ?? 0) === 0) this.all.breaker.refused(key);
  }

  /** Returns true if a request of a key may try this target before other available ones. */
  mayLead(key: string, now: number): boolean {
    return this.all.breaker.mayLead(now, key) && this.clients.byKey.get(key)?.breaker.mayLead(now, key) !== false;
  }

  /** Returns true if the breaker for all keys, or for this one, is open. */
  isOpen(key?: string): boolean {
    return this.all.breaker.isOpen || (key !== undefined && this.clients.byKey.get(key)?.breaker.isOpen === true);
  }

  openScopes(): BreakerScope[] {
    return [this.all, ...this.clients.byKey.values()].filter(({ breaker }) => breaker.isOpen);
  }

  /**
   * Counts a success. It does not count for breakers that have changed meanwhile.
   * @returns the scopes that it closed
   */
  succeed(permit: Permit, now: number): BreakerScope[] {
    const { tickets, key } = permit;
    permit.succeededAt = now;
    const closed: BreakerScope[] = [];
    const keyScope = this.clients.byKey.get(key);
    if (keyScope?.breaker.isCurrent(tickets.client ?? NO_TICKET)) {
      if (!keyScope.breaker.isOpen) keyScope.outcomes.add(false, now);
      else if (this.#close("client", keyScope, permit, now)) closed.push(keyScope);
    }
    if (!this.all.breaker.isCurrent(tickets.all)) return closed;
    if (this.all.breaker.isOpen) {
      if (this.#close("all", this.all, permit, now)) closed.push(this.all);
      return closed;
    }
    this.#connectFailures = 0;
    this.all.outcomes.add(false, now);
    this.#lastSuccess = permit;
    this.#endedStreak = this.streak.total > 0 ? this.streak : undefined;
    if (this.#endedStreak !== undefined) this.streak = new FailureStreak();
    return closed;
  }

  #close(kind: keyof Permit["tickets"], scope: BreakerScope, permit: Permit, now: number): boolean {
    if (!scope.close(permit.tickets[kind] ?? NO_TICKET, now)) return false;
    // If the answer of the trial breaks off, the closed breaker counts that.
    permit.tickets = { ...permit.tickets, [kind]: scope.breaker.enter(now, permit.key) };
    if (scope === this.all) {
      this.#failedTrial = undefined;
      this.#isConfirmed = false;
    }
    this.#connectFailures = 0;
    this.streak = new FailureStreak();
    this.#endedStreak = undefined;
    return true;
  }

  /**
   * Counts a failure. A failed trial opens the breaker for all keys if no connection could be made, if the last probe
   * failed, too, or if the trial of another key has failed before. Otherwise it opens the breaker for its own key, and
   * another key gets the next trial.
   * @returns `reopened`: scopes whose breakers must open again, because a trial has failed; `suspects`: scopes with too
   * many failures, of which the first whose breaker may open is opened
   */
  fail(
    permit: Permit,
    { isUnreachable, now, options }: { isUnreachable: boolean; now: number; options: BreakerOptions },
  ): { reopened: BreakerScope[]; suspects: BreakerScope[] } {
    const { key, tickets } = permit;
    const { breaker } = this.all;
    if (breaker.isTrial(tickets.all) && this.#isBlameless(key, now)) this.#isConfirmed = true;
    const keyScope = this.clients.findOrAdd(key, now);
    const reopened: BreakerScope[] = [];
    const wasOpen = breaker.isOpen;
    let isKeyFailure = false;
    if (breaker.isCurrent(tickets.all)) {
      if (!wasOpen) this.#countFailure(permit, { isUnreachable, now });
      else if (isDecisive(breaker, tickets.all, now)) {
        const isFirst = this.#failedTrial === undefined || this.#failedTrial === key;
        isKeyFailure = isFirst && !isUnreachable && !breaker.isDown;
        this.#failedTrial = isKeyFailure ? key : undefined;
        if (!isKeyFailure) reopened.push(this.all);
      }
    }
    const ticket = tickets.client ?? NO_TICKET;
    if (keyScope.breaker.isCurrent(ticket)) {
      if (!keyScope.breaker.isOpen) {
        // Without a ticket, the key had no scope that could count the beginning of the answer.
        keyScope.outcomes.add(true, now, tickets.client && permit.succeededAt);
        if (isKeyFailure) reopened.push(keyScope);
      } else if (isDecisive(keyScope.breaker, ticket, now)) reopened.push(keyScope);
    }
    return { reopened, suspects: wasOpen ? [] : this.#suspects(keyScope, now, options) };
  }

  #countFailure(permit: Permit, { isUnreachable, now }: { isUnreachable: boolean; now: number }): void {
    // An answer that began and then broke off was not a success, so the earlier failures count again.
    if (this.#lastSuccess === permit && this.#endedStreak !== undefined) {
      this.streak.addAll(this.#endedStreak);
      this.#endedStreak = undefined;
    }
    this.#connectFailures = isUnreachable ? this.#connectFailures + 1 : 0;
    this.all.outcomes.add(true, now, permit.succeededAt);
    this.streak.add(permit.key);
  }

  #suspects(keyScope: BreakerScope, now: number, options: BreakerOptions): BreakerScope[] {
    return [
      ...(this.#isBadForAll(now, options) ? [this.all] : []),
      ...(!keyScope.breaker.isOpen && this.#isBadFor(keyScope, now, options) ? [keyScope] : []),
    ];
  }

  /** Returns true if the target fails too often even without the key with the most failures, or cannot be reached. */
  #isBadForAll(now: number, options: BreakerOptions): boolean {
    const { consecutiveFailures, connectFailures } = options;
    if (this.#connectFailures >= connectFailures) {
      this.#isConfirmed = true;
      return true;
    }
    if (this.streak.withoutWorstKey >= consecutiveFailures) return true;
    const all = this.all.outcomes.read(now);
    if (!isBadShare(all, options)) return false;
    const worst = this.clients.readWorst(now);
    return isBadShare({ samples: all.samples - worst.samples, failures: all.failures - worst.failures }, options);
  }

  #isBadFor(keyScope: BreakerScope, now: number, options: BreakerOptions): boolean {
    return this.streak.of(keyScope.key ?? "") >= options.consecutiveFailures ||
      isBadShare(keyScope.outcomes.read(now), options);
  }

  /** Allows another trial after one without a result. */
  giveBack({ key, tickets }: Permit, now: number): void {
    this.all.breaker.giveBack(tickets.all, now);
    if (tickets.client !== undefined) this.clients.byKey.get(key)?.breaker.giveBack(tickets.client, now);
  }

  /**
   * Pauses the target for a key whose request reached a limit, and for all keys if another key has reached it as well.
   */
  cool(key: string, { forMs, now }: { forMs: number; now: number }): void {
    const until = now + Math.min(forMs, MAX_COOL_MS);
    this.all.coolUntil = Math.max(this.all.coolUntil, Math.min(until, this.clients.othersCoolUntil(key, now)));
    const keyScope = this.clients.findOrAdd(key, now);
    keyScope.coolUntil = Math.max(keyScope.coolUntil, until);
  }

  /** Discards all outcomes, and counts over another time. */
  restart(windowMs: number): void {
    this.all.outcomes = new OutcomeWindow(windowMs);
    this.clients.restart(windowMs);
  }

  /**
   * True if a breaker is open or half-open and has no current trial. The breaker of a single key counts until a request
   * of another key succeeds, because the key may never be used again.
   */
  get awaitsTrial(): boolean {
    return this.all.breaker.awaitsTrial || (this.streak.total > 0 && this.clients.awaitsTrial);
  }

  /** Returns the state for all keys; if that is closed, the worst state of single keys. */
  state(now: number): ScopeState & { keys?: number } {
    const all = this.all.state(now);
    return all.state === "closed" ? this.clients.worstState(now) ?? all : all;
  }
}

/** The ticket of a request that passed when its key had no breaker. */
const NO_TICKET: BreakerTicket = { epoch: 0 };

/** Returns true if the failure of a request opens the breaker again: it was a trial, and the open time was over. */
function isDecisive(breaker: CircuitBreaker, ticket: BreakerTicket, now: number): boolean {
  return breaker.isTrial(ticket) && now >= breaker.until;
}

function isBadShare(
  { samples, failures }: { samples: number; failures: number },
  { minSamples, failureShare }: BreakerOptions,
): boolean {
  return samples >= minSamples && failures >= samples * failureShare;
}
