/** The circuit breaker and failures of one target, for all client keys or for one of them. */
import { type BreakerTicket, CircuitBreaker } from "./circuit_breaker.ts";
import type { HealthRow } from "./health.ts";
import { OutcomeWindow } from "./outcome_window.ts";

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
  #outcomes: OutcomeWindow;

  /** @param windowMs time that outcomes count for, in milliseconds */
  constructor(key: string | undefined, windowMs: number) {
    this.key = key;
    this.#outcomes = new OutcomeWindow(windowMs);
  }

  /** Counts an outcome. */
  count(failed: boolean, now: number): void {
    this.#outcomes.add(failed, now);
  }

  /** Requests that count, and how many of them failed. */
  read(now: number): { samples: number; failures: number } {
    return this.#outcomes.read(now);
  }

  /** Begins to count anew, over another time. */
  restart(windowMs: number): void {
    this.#outcomes = new OutcomeWindow(windowMs);
  }

  /** Closes the breaker after the success of a trial. @returns false where the request was no trial of it */
  close(ticket: BreakerTicket, now: number): boolean {
    if (!this.breaker.wasTrial(ticket)) return false;
    this.breaker.close(now);
    this.#outcomes.clear();
    this.#outcomes.add(false, now);
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
export function compareSeverity(a: ScopeState, b: ScopeState): number {
  return SEVERITY.indexOf(b.state) - SEVERITY.indexOf(a.state);
}
