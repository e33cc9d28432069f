/** The time limits of many calls, with one timer for all of them. */
import { Bag, type Bagged } from "../unordered_list.ts";
import { type GatewayError, upstreamTimeout } from "../errors.ts";
import type { PhaseLimits } from "./types.ts";

/** The time limits of one call. */
export interface RequestTimer {
  /** When the call began, by `performance.now()`. */
  readonly started: number;
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

/** What a call is to those who watch it. */
export interface TimedRequest {
  fail(error: GatewayError): void;
}

/** Watches over the calls of one transport. */
export interface RequestTimers {
  /** Starts a call, which fails where it takes too long. */
  start(limits: PhaseLimits, call: TimedRequest): RequestTimer;
  /** Lets the present calls come to their ends. */
  close(): void;
}

/** A limit may be noticed this much too late, so that many of them are noticed at once, in milliseconds. */
const GRAIN_MS = 20;

/** Without a call. */
export function createRequestTimers(): RequestTimers {
  return new SharedRequestTimers();
}

class SharedRequestTimers implements RequestTimers {
  readonly #calls = new Bag<SingleRequestTimer>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #armedFor = Infinity;
  #closed = false;
  #postponed = false;

  start(limits: PhaseLimits, call: TimedRequest): RequestTimer {
    const watch = new SingleRequestTimer(limits, { call, deadlines: this });
    this.#calls.add(watch);
    this.arm(watch.check(watch.started), watch.started);
    return watch;
  }

  close(): void {
    this.#closed = true;
    if (this.#calls.items.length === 0) this.#disarm();
  }

  /** Sees to it that the calls are looked at then, or before. */
  arm(due: number, now: number): void {
    if (due >= this.#armedFor || this.#calls.items.length === 0) return;
    clearTimeout(this.#timer);
    this.#armedFor = Math.max(due, now);
    this.#timer = setTimeout(() => this.#check(), this.#armedFor - now + 1);
    // The calls themselves keep the process alive.
    Deno.unrefTimer(this.#timer);
  }

  /** It is over. */
  forget(call: SingleRequestTimer): void {
    this.#calls.delete(call);
    if (this.#closed && this.#calls.items.length === 0) this.#disarm();
  }

  #check(): void {
    const now = performance.now();
    const isLate = now - this.#armedFor > GRAIN_MS;
    this.#armedFor = Infinity;
    // A process that was held up takes what has come meanwhile first: the delay was not the upstream's.
    this.#postponed = isLate && !this.#postponed;
    if (this.#postponed) return this.arm(now + GRAIN_MS, now);
    let next = Infinity;
    for (const call of [...this.#calls.items]) next = Math.min(next, call.check(now));
    if (next < Infinity) this.arm(Math.max(next, now + GRAIN_MS), now);
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#armedFor = Infinity;
  }
}

class SingleRequestTimer implements RequestTimer, Bagged {
  readonly #limits: PhaseLimits;
  readonly #call: TimedRequest;
  readonly #deadlines: SharedRequestTimers;
  readonly started = performance.now();
  at = -1;
  #connectingSince = Infinity;
  /** `undefined`: the upstream is not waited for. */
  #waitingSince: number | undefined = this.started;
  #answered = false;

  constructor(limits: PhaseLimits, { call, deadlines }: { call: TimedRequest; deadlines: SharedRequestTimers }) {
    this.#limits = limits;
    this.#call = call;
    this.#deadlines = deadlines;
  }

  /** Expires where it is time. Returns when to look again. */
  check(now: number): number {
    const { connectMs, firstByteMs, idleMs, totalMs } = this.#limits;
    const whole = this.started + totalMs;
    const phaseMs = this.#answered ? idleMs : firstByteMs;
    const phaseEnd = (this.#waitingSince ?? now) + phaseMs;
    const connectEnd = this.#connectingSince + connectMs;
    const end = Math.min(phaseEnd, whole, connectEnd);
    if (now < end) return end;
    this.stop();
    if (end === connectEnd) this.#call.fail(upstreamTimeout("no connection", connectMs));
    else if (end === whole) this.#call.fail(upstreamTimeout("no whole answer", totalMs));
    else this.#call.fail(upstreamTimeout(this.#answered ? "nothing more" : "no answer", phaseMs));
    return Infinity;
  }

  connecting(): void {
    const now = performance.now();
    this.#connectingSince = now;
    this.#deadlines.arm(now + this.#limits.connectMs, now);
  }

  connected(): void {
    this.#connectingSince = Infinity;
  }

  wait(): void {
    const now = performance.now();
    this.#waitingSince = now;
    if (this.#answered) this.#deadlines.arm(now + this.#limits.idleMs, now);
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
    this.#deadlines.forget(this);
  }
}
