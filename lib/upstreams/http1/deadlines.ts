/** The time limits of many calls, with one timer for all of them. */
import type { GatewayError } from "../../errors.ts";
import { lateError, type TimeLimits } from "../transport.ts";

/** The time limits of one call. */
export interface Watch {
  /** A connection is being made. */
  connecting(): void;
  /** There is one. */
  connected(): void;
  /** The upstream is being waited for. */
  wait(): void;
  /** The answer's head arrived. */
  head(): void;
  /** A piece of the body arrived. Until the next `wait` nobody is waiting: a slow client is not the upstream's fault. */
  progress(): void;
  stop(): void;
}

/** Watches over the calls of one transport. */
export interface Deadlines {
  /** Starts a call; `expire` is called once, where it takes too long. */
  start(limits: TimeLimits, expire: (error: GatewayError) => void): Watch;
  /** Lets the present calls come to their ends. */
  close(): void;
}

/** A limit may be noticed this much too late, so that many of them are noticed at once, in milliseconds. */
const GRAIN_MS = 20;

/** Without a call. */
export function createDeadlines(): Deadlines {
  const calls = new Set<CallWatch>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let armedFor = Infinity;
  let closed = false;
  let postponed = false;

  function arm(due: number, now: number): void {
    if (due >= armedFor || calls.size === 0) return;
    clearTimeout(timer);
    armedFor = Math.max(due, now);
    timer = setTimeout(check, armedFor - now + 1);
    // The calls themselves keep the process alive.
    Deno.unrefTimer(timer);
  }

  function check(): void {
    const now = performance.now();
    const isLate = now - armedFor > GRAIN_MS;
    armedFor = Infinity;
    // A process that was held up takes what has come meanwhile first: the delay was not the upstream's.
    postponed = isLate && !postponed;
    if (postponed) return arm(now + GRAIN_MS, now);
    let next = Infinity;
    for (const call of calls) {
      const due = call.check(now);
      if (due < next) next = due;
    }
    if (next < Infinity) arm(Math.max(next, now + GRAIN_MS), now);
  }

  function disarm(): void {
    clearTimeout(timer);
    armedFor = Infinity;
  }

  function forget(call: CallWatch): void {
    calls.delete(call);
    if (closed && calls.size === 0) disarm();
  }

  return {
    start(limits, expire) {
      const call = new CallWatch({ limits, expire, arm, forget });
      calls.add(call);
      arm(call.check(call.started), call.started);
      return call;
    },
    close() {
      closed = true;
      if (calls.size === 0) disarm();
    },
  };
}

interface CallWatchOptions {
  limits: TimeLimits;
  expire: (error: GatewayError) => void;
  /** Sees to it that the call is checked at that time or before. */
  arm: (due: number, now: number) => void;
  forget: (call: CallWatch) => void;
}

class CallWatch implements Watch {
  readonly #limits: TimeLimits;
  readonly #options: CallWatchOptions;
  readonly started = performance.now();
  #connectingSince: number | undefined;
  /** `undefined`: the upstream is not waited for. */
  #waitingSince: number | undefined = this.started;
  #answered = false;

  constructor(options: CallWatchOptions) {
    this.#options = options;
    this.#limits = options.limits;
  }

  /** Expires where it is time. Returns when to look again. */
  check(now: number): number {
    const { connectMs, firstByteMs, idleMs, totalMs } = this.#limits;
    const whole = this.started + totalMs;
    const phaseMs = this.#answered ? idleMs : firstByteMs;
    const phaseEnd = (this.#waitingSince ?? now) + phaseMs;
    const connectEnd = (this.#connectingSince ?? Infinity) + connectMs;
    const end = Math.min(phaseEnd, whole, connectEnd);
    if (now < end) return end;
    this.stop();
    if (end === connectEnd) this.#options.expire(lateError("no connection", connectMs));
    else if (end === whole) this.#options.expire(lateError("no whole answer", totalMs));
    else this.#options.expire(lateError(this.#answered ? "nothing more" : "no answer", phaseMs));
    return Infinity;
  }

  connecting(): void {
    const now = performance.now();
    this.#connectingSince = now;
    this.#options.arm(now + this.#limits.connectMs, now);
  }

  connected(): void {
    this.#connectingSince = undefined;
  }

  wait(): void {
    const now = performance.now();
    this.#waitingSince = now;
    if (this.#answered) this.#options.arm(now + this.#limits.idleMs, now);
  }

  head(): void {
    this.#waitingSince = undefined;
    if (this.#limits.begins !== "body") this.#answered = true;
  }

  progress(): void {
    this.#waitingSince = undefined;
    this.#answered = true;
  }

  stop(): void {
    this.#options.forget(this);
  }
}
