/** Reachability of a remote store, inferred from its calls and from probes between them. */
import type { Log } from "../../log_events.ts";
import { GatewayError, nameOf } from "../../errors.ts";

/** Dependencies. */
export interface ReachParts {
  /** Sends a small query to the store. */
  probe: () => Promise<unknown>;
  /** Returns whether an error means that the store is unreachable, and not that the call was invalid. */
  isOutOfReach: (error: unknown) => boolean;
  /** Called when a probe succeeds. The store counts as up once this calls `rise` or resolves. */
  answers: (rise: () => void) => Promise<void>;
  /** Returns whether work waits for the store. */
  hasWork: () => boolean;
  log: Log;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
  /** Starts a timer of `ms` milliseconds; the returned function cancels it. */
  later: (run: () => void, ms: number) => () => void;
  /** Random numbers from 0 to 1, exclusive. */
  random: () => number;
}

/** Timeout of an answer, in milliseconds. */
const ANSWER_MS = 2_000;

/** Probe interval in milliseconds, and its jitter, which spreads the probes of the nodes. */
const PROBE_MS = 1_000;
const JITTER = 0.25;

/** Time a change lasts before it is logged, in milliseconds: a flapping store is one outage. */
const SETTLED_MS = 1_000;

/** Value of `retry-after`, in milliseconds. */
const RETRY_MS = 2_000;

/** The store did not answer in time. */
class LateError extends Error {
  override readonly name = "LateError";
}

/** Logs outages. */
interface Outages {
  /** The store became unreachable. */
  fell(cause: unknown): void;
  /** The store answers again. */
  rose(): void;
  /** Stops logging. */
  close(): void;
}

/**
 * Creates the log of outages. An outage lasts from the first failure until the store has been up for a second; shorter
 * ones are not logged.
 */
function createOutages(
  { isUp, log, monotonic, later }: Pick<ReachParts, "log" | "monotonic" | "later"> & { isUp: () => boolean },
): Outages {
  let outage: { began: number; cause: unknown; rose: number; isLogged: boolean } | undefined;
  let cancel = () => {};

  function logDown(): void {
    if (outage === undefined || outage.isLogged || isUp()) return;
    outage.isLogged = true;
    const [name, code] = [nameOf(outage.cause), codeOf(outage.cause)];
    log({ level: "error", event: "store_down", cause: name, ...(code !== undefined && { code }) });
  }

  function logUp(): void {
    if (outage?.isLogged === true) {
      log({ level: "info", event: "store_up", down_ms: Math.round(outage.rose - outage.began) });
    }
    outage = undefined;
  }

  return {
    fell(cause) {
      cancel();
      outage ??= { began: monotonic(), cause, rose: 0, isLogged: false };
      const waitMs = outage.began + SETTLED_MS - monotonic();
      if (waitMs <= 0) logDown();
      else cancel = later(logDown, waitMs);
    },
    rose() {
      cancel();
      if (outage === undefined) return;
      outage.rose = monotonic();
      cancel = later(logUp, SETTLED_MS);
    },
    close: () => cancel(),
  };
}

/** Reachability of a store. */
export class Reach {
  readonly #parts: ReachParts;
  #isUp = true;
  #since: number;
  /** Time of the last answer. */
  #heardAt: number;
  #why: unknown;
  #isClosed = false;
  #probing: Promise<void> | undefined;
  #cancel = () => {};
  readonly #outages: Outages;
  /** Functions that end each pending wait. */
  readonly #waiting = new Set<() => void>();

  constructor(parts: ReachParts) {
    this.#parts = parts;
    this.#since = parts.monotonic();
    this.#heardAt = this.#since;
    this.#outages = createOutages({ ...parts, isUp: () => this.#isUp });
    this.#schedule(parts.hasWork() ? 0 : PROBE_MS);
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Milliseconds since the start of the outage; 0 while it is up. */
  get downMs(): number {
    return this.#isUp ? 0 : this.#parts.monotonic() - this.#since;
  }

  /** Milliseconds of uninterrupted uptime; 0 while it is down. */
  get upMs(): number {
    return this.#isUp ? this.#parts.monotonic() - this.#since : 0;
  }

  /** Milliseconds since its last answer; `undefined` while it is down. */
  get heardMs(): number | undefined {
    return this.#isUp ? this.#parts.monotonic() - this.#heardAt : undefined;
  }

  /**
   * Calls the store; rejects at once while it is known to be down.
   * @throws {GatewayError} `overloaded` if it is unreachable or does not answer in time
   */
  ask<T>(call: () => Promise<T>): Promise<T> {
    return this.#ask(call, (answer) => this.within(answer));
  }

  /** As `ask`, without a timeout. */
  askLong<T>(call: () => Promise<T>): Promise<T> {
    return this.#ask(call, (answer) => answer);
  }

  /** Awaits an answer with a timeout, whether the store is up or not. @throws the answer's own error */
  async within<T>(answer: Promise<T>): Promise<T> {
    // A failure after the time limit has no consequence.
    answer.catch(() => {});
    if (this.#isClosed) throw new LateError("Cannot wait for the store: it is being closed");
    const late = Promise.withResolvers<never>();
    const give = () => late.reject(new LateError("Cannot wait any longer: the store does not answer"));
    // After a stall of this process, the answer may be pending together with the timer: one more event loop turn lets
    // it win.
    let off = this.#parts.later(() => off = this.#parts.later(give, 0), ANSWER_MS);
    this.#waiting.add(give);
    try {
      return await Promise.race([answer, late.promise]);
    } finally {
      this.#waiting.delete(give);
      off();
    }
  }

  /** Records a failure. */
  fail(cause: unknown): void {
    this.#why = cause;
    if (!this.#isUp || this.#isClosed) return;
    [this.#isUp, this.#since] = [false, this.#parts.monotonic()];
    this.#outages.fell(cause);
    this.#schedule(0);
  }

  /** Stops probing. Resolves when no probe is running. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    this.#outages.close();
    for (const give of this.#waiting) give();
    await this.#probing;
  }

  #schedule(ms: number): void {
    this.#cancel();
    if (this.#isClosed || this.#probing !== undefined) return;
    this.#cancel = this.#parts.later(() => {
      this.#probing = this.#probe().finally(() => {
        this.#probing = undefined;
        this.#schedule(PROBE_MS);
      });
    }, ms * (1 - JITTER + 2 * JITTER * this.#parts.random()));
  }

  async #probe(): Promise<void> {
    if (this.#isUp && !this.#parts.hasWork() && this.#parts.monotonic() - this.#heardAt < PROBE_MS) return;
    try {
      await this.within(this.#parts.probe());
      this.#heardAt = this.#parts.monotonic();
      await this.#parts.answers(() => this.#rise());
      this.#rise();
    } catch (cause) {
      this.fail(cause);
    }
  }

  #rise(): void {
    if (this.#isUp || this.#isClosed) return;
    [this.#isUp, this.#since] = [true, this.#parts.monotonic()];
    this.#outages.rose();
  }

  async #ask<T>(call: () => Promise<T>, wait: (answer: Promise<T>) => Promise<T>): Promise<T> {
    if (!this.#isUp) throw outOfReach(this.#why);
    try {
      const answer = await wait(call());
      this.#heardAt = this.#parts.monotonic();
      return answer;
    } catch (cause) {
      if (!this.#parts.isOutOfReach(cause) && !(cause instanceof LateError)) throw cause;
      this.fail(cause);
      throw outOfReach(cause);
    }
  }
}

/** The error of a call of a store that is out of reach. */
export function outOfReach(cause: unknown): GatewayError {
  return new GatewayError("overloaded", "Cannot reach the store of keys and the ledger at the moment", {
    retryAfterMs: RETRY_MS,
    refusal: { outage: "store" },
    cause,
  });
}

/** The driver's code of an error, such as `ECONNREFUSED` or `57P01`. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
