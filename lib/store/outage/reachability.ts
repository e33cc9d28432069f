/** Finds out whether a remote store is reachable, from the calls to it and from probes between them. */
import type { Log } from "../../log_events.ts";
import { describeFailure } from "../../causes.ts";
import { GatewayError } from "../../errors.ts";
import { createOutages, type Outages } from "../../outages.ts";
import { startCallTimeout, type StartTimer } from "../../start_timer.ts";

/** Dependencies of `Reach`. */
export interface ReachParts {
  /** Sends a small query to the store. Rejects if it is unreachable. */
  probe: () => Promise<unknown>;
  /** Returns whether an error means that the store is unreachable, and not that the call was invalid. */
  isOutOfReach: (error: unknown) => boolean;
  /** Called when a probe succeeds. The store counts as reachable once this calls `rise` or resolves. */
  answers: (rise: () => void) => Promise<void>;
  /** Returns whether work waits for the store. */
  hasWork: () => boolean;
  /**
   * Replaces the connections. Called when the store becomes unreachable, and after each failed probe. It may leave
   * running calls some time to end.
   */
  reconnect: () => void;
  log: Log;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
  later: StartTimer;
  /** Random numbers from 0 to 1, exclusive. */
  random: () => number;
}

/** Longest wait for an answer, in milliseconds. */
const ANSWER_TIMEOUT_MS = 2_000;

/** Interval of probes in milliseconds, and the share by which it varies, so that the nodes do not probe at once. */
const PROBE_INTERVAL_MS = 1_000;
const JITTER = 0.25;

/** Value of `retry-after`, in milliseconds. */
const RETRY_AFTER_MS = 2_000;

/** Thrown if the store does not answer in time. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/**
 * Awaits an answer of the store with a timeout. A failure after that has no consequences.
 * @param options `waits`: gets the function that ends this wait, while it lasts
 * @throws {NoAnswer} after the timeout
 */
export async function inTime<T>(
  answer: Promise<T>,
  ms: number,
  { later, waits }: { later?: StartTimer; waits?: Set<() => void> } = {},
): Promise<T> {
  answer.catch(() => {});
  const late = Promise.withResolvers<never>();
  const giveUp = () => late.reject(new NoAnswer("Cannot wait any longer: the store does not answer"));
  const cancelTimeout = startCallTimeout(giveUp, ms, later);
  waits?.add(giveUp);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    waits?.delete(giveUp);
    cancelTimeout();
  }
}

/** Tracks whether a store is reachable, and passes calls to it. */
export class Reach {
  readonly #parts: ReachParts;
  #isUp = true;
  /** Monotonic time of the last change of `isUp`. */
  #changedAt: number;
  /** Monotonic time of the last answer. */
  #answeredAt: number;
  #lastFailure: unknown;
  #isClosed = false;
  /** Functions that end the pending waits. */
  readonly #waits = new Set<() => void>();
  #probing: Promise<void> | undefined;
  #cancelProbe = () => {};
  readonly #outages: Outages<unknown>;

  constructor(parts: ReachParts) {
    this.#parts = parts;
    this.#changedAt = parts.monotonic();
    this.#answeredAt = this.#changedAt;
    const { log, monotonic, later } = parts;
    this.#outages = createOutages({
      isUp: () => this.#isUp,
      logDown: (cause) => log({ level: "error", event: "store_down", ...describeFailure(cause) }),
      logUp: (downMs) => log({ level: "info", event: "store_up", down_ms: downMs }),
      monotonic,
      later,
    });
    this.#schedule(parts.hasWork() ? 0 : PROBE_INTERVAL_MS);
  }

  /** True if the store is reachable, as far as is known. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /** Milliseconds since the start of the outage; 0 while the store is reachable. */
  get downMs(): number {
    return this.#isUp ? 0 : this.#parts.monotonic() - this.#changedAt;
  }

  /** Milliseconds for which the store has been reachable without interruption; 0 during an outage. */
  get upMs(): number {
    return this.#isUp ? this.#parts.monotonic() - this.#changedAt : 0;
  }

  /** Milliseconds since the last answer; `undefined` during an outage. */
  get msSinceAnswer(): number | undefined {
    return this.#isUp ? this.#parts.monotonic() - this.#answeredAt : undefined;
  }

  /**
   * Calls the store. Rejects at once if the store is known to be unreachable.
   * @throws {GatewayError} `overloaded` if it is unreachable or does not answer in time
   */
  async ask<T>(call: () => Promise<T>): Promise<T> {
    if (!this.#isUp) throw outOfReach(this.#lastFailure);
    const calledAt = this.#parts.monotonic();
    try {
      const answer = await this.within(call());
      this.#answeredAt = this.#parts.monotonic();
      return answer;
    } catch (cause) {
      if (!this.#parts.isOutOfReach(cause) && !(cause instanceof NoAnswer)) throw cause;
      // A call on a replaced connection says nothing about the new ones.
      if (calledAt >= this.#changedAt) this.fail(cause);
      throw outOfReach(cause);
    }
  }

  /**
   * Calls the store as `ask` does, but without a timeout. Neither an answer nor a failure says whether the store is
   * reachable for others: reports have connections of their own, and an operator may end a long one.
   */
  async askLong<T>(call: () => Promise<T>): Promise<T> {
    if (!this.#isUp) throw outOfReach(this.#lastFailure);
    try {
      return await call();
    } catch (cause) {
      throw this.#parts.isOutOfReach(cause) ? outOfReach(cause) : cause;
    }
  }

  /**
   * Waits for an answer with a timeout, whether the store counts as reachable or not.
   * @throws the answer's own error
   */
  within<T>(answer: Promise<T>): Promise<T> {
    const answered = inTime(answer, ANSWER_TIMEOUT_MS, { later: this.#parts.later, waits: this.#waits });
    if (this.#isClosed) this.#endWaits();
    return answered;
  }

  /** Records a failure: the store counts as unreachable until a probe succeeds. */
  fail(cause: unknown): void {
    this.#lastFailure = cause;
    if (this.#isClosed) return;
    const wasUp = this.#isUp;
    this.#isUp = false;
    this.#outages.fell(cause);
    if (!wasUp) return;
    this.#changedAt = this.#parts.monotonic();
    this.#parts.reconnect();
    this.#schedule(0);
  }

  /** Stops probing. Resolves when no probe is running. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelProbe();
    this.#outages.close();
    this.#endWaits();
    await this.#probing;
  }

  #endWaits(): void {
    for (const giveUp of this.#waits) giveUp();
  }

  #schedule(ms: number): void {
    this.#cancelProbe();
    if (this.#isClosed || this.#probing !== undefined) return;
    this.#cancelProbe = this.#parts.later(() => {
      this.#probing = this.#probe().finally(() => {
        this.#probing = undefined;
        this.#schedule(PROBE_INTERVAL_MS);
      });
    }, ms * (1 - JITTER + 2 * JITTER * this.#parts.random()));
  }

  async #probe(): Promise<void> {
    if (this.#isUp && !this.#parts.hasWork() && this.#parts.monotonic() - this.#answeredAt < PROBE_INTERVAL_MS) return;
    try {
      await this.within(this.#parts.probe());
      this.#answeredAt = this.#parts.monotonic();
      await this.#parts.answers(() => this.#rise());
      this.#rise();
    } catch (cause) {
      if (!this.#isUp && !this.#isClosed) this.#parts.reconnect();
      this.fail(cause);
    }
  }

  #rise(): void {
    if (this.#isUp || this.#isClosed) return;
    [this.#isUp, this.#changedAt] = [true, this.#parts.monotonic()];
    this.#outages.rose();
  }
}

/** Returns the error for a call of an unreachable store. */
export function outOfReach(cause: unknown): GatewayError {
  return new GatewayError("overloaded", "Cannot reach the store of keys and the ledger at the moment", {
    retryAfterMs: RETRY_AFTER_MS,
    refusal: { outage: "store" },
    cause,
  });
}
