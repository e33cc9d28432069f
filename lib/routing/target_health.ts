/** The health of one target: a breaker for all client keys, and breakers of single keys beside it. */
import {
  BreakerScope,
  type BreakerTicket,
  type CircuitBreaker,
  ClientScopes,
  type ScopeState,
} from "./circuit_breaker.ts";
import { FailureStreak, OutcomeWindow, RecentAttempts, RetryBudget, SpeedSamples } from "./target_statistics.ts";
import type { BreakerOptions, Permit, TargetKey } from "./health.ts";

/** Longest pause of a target at its limit that is believed, in milliseconds. */
const MAX_COOL_MS = 60_000;

/** Effect of a failure on the breakers of its target. */
export interface FailureEffect {
  /** They open: a trial has failed. */
  reopened: BreakerScope[];
  /** The first of them that may open does: too much has failed. */
  suspects: BreakerScope[];
}

/** Health of one target. Times are milliseconds of a monotonic clock. */
export class TargetHealth {
  readonly target: TargetKey;
  readonly all: BreakerScope;
  readonly clients: ClientScopes;
  readonly recent = new RecentAttempts();
  readonly firstMs = new SpeedSamples();
  readonly tokensPerSecond = new SpeedSamples();
  readonly retryBudget = new RetryBudget();
  /** Failures since the last success. */
  streak = new FailureStreak();
  /** The success that began the streak, and the streak that it ended. */
  #lastSuccess: Permit | undefined;
  #endedStreak: FailureStreak | undefined;
  /** Failures to connect, one after another. */
  #unreachable = 0;
  /** The client key whose trial has failed since the breaker opened, without a sign that it fails for others. */
  #failedTrial: string | undefined;

  /** @param windowMs time that outcomes count for, in milliseconds */
  constructor({ upstream, model, row }: TargetKey, windowMs: number) {
    this.target = { upstream, model, ...(row !== undefined && { row }) };
    this.all = new BreakerScope(undefined, windowMs);
    this.clients = new ClientScopes(windowMs);
  }

  /** Time that the target has asked for, and time that breakers are open for, until a request of a key may go there. */
  waits(key: string, { now, early }: { now: number; early?: boolean | undefined }): { coolMs: number; openMs: number } {
    const own = this.clients.byKey.get(key);
    return {
      coolMs: Math.max(0, this.all.coolUntil - now, (own?.coolUntil ?? 0) - now),
      openMs: Math.max(this.all.breaker.waitMs(now, key, early), own?.breaker.waitMs(now, key, early) ?? 0),
    };
  }

  /** Lets a request pass whose waits are over. */
  enter(key: string, now: number): Permit {
    const tickets = {
      all: this.all.breaker.enter(now, key),
      client: this.clients.byKey.get(key)?.breaker.enter(now, key),
    };
    const isTrial = tickets.all.trial !== undefined || tickets.client?.trial !== undefined;
    return { target: this.target, key, isTrial, tickets };
  }

  /** The breaker for all keys takes note of a request that was refused by it alone. */
  noteRefusal(key: string, { now, early }: { now: number; early?: boolean | undefined }): void {
    if ((this.clients.byKey.get(key)?.breaker.waitMs(now, key, early) ?? 0) === 0) this.all.breaker.refused(key);
  }

  /** Returns true if a request of a key may go to this target before others that are up. */
  mayLead(key: string, now: number): boolean {
    return this.all.breaker.mayLead(now, key) && this.clients.byKey.get(key)?.breaker.mayLead(now, key) !== false;
  }

  /** Returns true if the breaker for all keys, or for this one, is open. */
  isOpen(key?: string): boolean {
    return this.all.breaker.isOpen || (key !== undefined && this.clients.byKey.get(key)?.breaker.isOpen === true);
  }

  /** Counts a success. Requests that passed before a breaker changed do not count for it. @returns scopes that it closed */
  succeed(permit: Permit, now: number): BreakerScope[] {
    const { tickets, key } = permit;
    const closed: BreakerScope[] = [];
    const own = this.clients.byKey.get(key);
    if (own?.breaker.isCurrent(tickets.client ?? NO_TICKET)) {
      if (!own.breaker.isOpen) own.outcomes.add(false, now);
      else if (this.#close(own, tickets.client, now)) closed.push(own);
    }
    if (!this.all.breaker.isCurrent(tickets.all)) return closed;
    if (this.all.breaker.isOpen) {
      if (this.#close(this.all, tickets.all, now)) closed.push(this.all);
      return closed;
    }
    this.#unreachable = 0;
    this.all.outcomes.add(false, now);
    this.#lastSuccess = permit;
    this.#endedStreak = this.streak.total > 0 ? this.streak : undefined;
    if (this.#endedStreak !== undefined) this.streak = new FailureStreak();
    return closed;
  }

  #close(scope: BreakerScope, ticket: BreakerTicket | undefined = NO_TICKET, now: number): boolean {
    if (!scope.close(ticket, now)) return false;
    if (scope === this.all) this.#failedTrial = undefined;
    this.#unreachable = 0;
    this.streak = new FailureStreak();
    this.#endedStreak = undefined;
    return true;
  }

  /**
   * Counts a failure. A failed trial opens the breaker for all keys where no connection could be made, the last probe
   * failed too, or the trial of another key has failed before. Otherwise it opens the one for its key, and the next trial
   * is another key's.
   */
  fail(
    permit: Permit,
    { isUnreachable, now, options }: { isUnreachable: boolean; now: number; options: BreakerOptions },
  ): FailureEffect {
    const { key, tickets } = permit;
    const { breaker } = this.all;
    const own = this.clients.findOrAdd(key, now);
    const reopened: BreakerScope[] = [];
    const wasOpen = breaker.isOpen;
    let isOwnFailure = false;
    if (breaker.isCurrent(tickets.all)) {
      if (!wasOpen) this.#countFailure(permit, { isUnreachable, now });
      else if (isDecisive(breaker, tickets.all, now)) {
        const isFirst = this.#failedTrial === undefined || this.#failedTrial === key;
        isOwnFailure = isFirst && !isUnreachable && !breaker.isDown;
        this.#failedTrial = isOwnFailure ? key : undefined;
        if (!isOwnFailure) reopened.push(this.all);
      }
    }
    const ticket = tickets.client ?? NO_TICKET;
    if (own.breaker.isCurrent(ticket)) {
      if (!own.breaker.isOpen) {
        own.outcomes.add(true, now);
        if (isOwnFailure) reopened.push(own);
      } else if (isDecisive(own.breaker, ticket, now)) reopened.push(own);
    }
    return { reopened, suspects: wasOpen ? [] : this.#suspects(own, now, options) };
  }

  #countFailure(permit: Permit, { isUnreachable, now }: { isUnreachable: boolean; now: number }): void {
    // An answer that began well and broke off was no success.
    if (this.#lastSuccess === permit && this.#endedStreak !== undefined) {
      this.streak.addAll(this.#endedStreak);
      this.#endedStreak = undefined;
    }
    this.#unreachable = isUnreachable ? this.#unreachable + 1 : 0;
    this.all.outcomes.add(true, now);
    this.streak.add(permit.key);
  }

  #suspects(own: BreakerScope, now: number, options: BreakerOptions): BreakerScope[] {
    return [
      ...(this.#isBadForAll(now, options) ? [this.all] : []),
      ...(!own.breaker.isOpen && this.#isBadFor(own, now, options) ? [own] : []),
    ];
  }

  /** It would be bad also without the requests of any one key. No request causes a failure to connect. */
  #isBadForAll(now: number, options: BreakerOptions): boolean {
    const { consecutiveFailures, connectFailures } = options;
    if (this.#unreachable >= connectFailures || this.streak.withoutWorstKey >= consecutiveFailures) return true;
    const all = this.all.outcomes.read(now);
    if (!isBadShare(all, options)) return false;
    const worst = this.clients.readWorst(now);
    return isBadShare({ samples: all.samples - worst.samples, failures: all.failures - worst.failures }, options);
  }

  #isBadFor(own: BreakerScope, now: number, options: BreakerOptions): boolean {
    return this.streak.of(own.key ?? "") >= options.consecutiveFailures || isBadShare(own.outcomes.read(now), options);
  }

  /** Trials that decided nothing make room for the next. */
  giveBack({ key, tickets }: Permit, now: number): void {
    this.all.breaker.giveBack(tickets.all, now);
    if (tickets.client !== undefined) this.clients.byKey.get(key)?.breaker.giveBack(tickets.client, now);
  }

  /** Pauses for a key whose request met a limit; for all keys as soon as another key meets it as well. */
  cool(key: string, { forMs, now }: { forMs: number; now: number }): void {
    const until = now + Math.min(forMs, MAX_COOL_MS);
    this.all.coolUntil = Math.max(this.all.coolUntil, Math.min(until, this.clients.othersCoolUntil(key, now)));
    const own = this.clients.findOrAdd(key, now);
    own.coolUntil = Math.max(own.coolUntil, until);
  }

  /** Begins to count outcomes anew, over another time. */
  restart(windowMs: number): void {
    this.all.outcomes = new OutcomeWindow(windowMs);
    this.clients.restart(windowMs);
  }

  /**
   * Returns true if a breaker is open and no request tries the target. The breaker of a single key counts until one of
   * another key succeeds, as the key may never be used again.
   */
  get awaitsTrial(): boolean {
    return this.all.breaker.awaitsTrial || (this.streak.total > 0 && this.clients.awaitsTrial);
  }

  /** The state for all keys, or else the worst for single keys. */
  state(now: number): ScopeState & { keys?: number } {
    const all = this.all.state(now);
    return all.state === "closed" ? this.clients.worstState(now) ?? all : all;
  }
}

/** The ticket of a request that passed before there was a breaker for its key. */
const NO_TICKET: BreakerTicket = { epoch: 0 };

/** The failure of a trial opens the breaker again. A trial that came early leaves the open time as it is. */
function isDecisive(breaker: CircuitBreaker, ticket: BreakerTicket, now: number): boolean {
  return breaker.isTrial(ticket) && now >= breaker.until;
}

function isBadShare(
  { samples, failures }: { samples: number; failures: number },
  { minSamples, failureShare }: BreakerOptions,
): boolean {
  return samples >= minSamples && failures >= samples * failureShare;
}
