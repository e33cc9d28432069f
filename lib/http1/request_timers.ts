/** Time limits of many requests, with one timer of the runtime for all of them. */
import { type UnorderedItem, UnorderedList } from "../unordered_list.ts";
import { type GatewayError, upstreamTimeout } from "../errors.ts";
import type { PhaseLimits } from "./types.ts";

/** Time limits of one request. */
export interface RequestTimer {
  /** Start of the request, by `performance.now()`. */
  readonly started: number;
  /** The request waits for a connection. */
  connecting(): void;
  /** The connection is open. */
  connected(): void;
  /** The request waits for the upstream. */
  wait(): void;
  /** The head of the response arrived. */
  head(): void;
  /** A piece of the body arrived. No time counts until the next `wait`: a slow client is not the upstream's fault. */
  progress(): void;
  stop(): void;
}

/** A request as its timer sees it. */
export interface TimedRequest {
  fail(error: GatewayError): void;
}

/** The timers of one client. */
export interface RequestTimers {
  /** Starts to time a request, which fails where a phase takes too long. */
  start(limits: PhaseLimits, call: TimedRequest): RequestTimer;
  /** Stops when the present requests have ended. */
  close(): void;
}

/** Limits may be noticed this late, in milliseconds, so that many are noticed at once. */
const GRAIN_MS = 20;

/** Creates timers without a request. */
export function createRequestTimers(): RequestTimers {
  return new SharedRequestTimers();
}

class SharedRequestTimers implements RequestTimers {
  readonly #calls = new UnorderedList<SingleRequestTimer>();
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

  /** Checks the requests at `due` or earlier. */
  arm(due: number, now: number): void {
    if (due >= this.#armedFor || this.#calls.items.length === 0) return;
    clearTimeout(this.#timer);
    this.#armedFor = Math.max(due, now);
    this.#timer = setTimeout(() => this.#check(), this.#armedFor - now + 1);
    // The requests themselves keep the process alive.
    Deno.unrefTimer(this.#timer);
  }

  /** Stops timing a request. */
  forget(call: SingleRequestTimer): void {
    this.#calls.delete(call);
    if (this.#closed && this.#calls.items.length === 0) this.#disarm();
  }

  #check(): void {
    const now = performance.now();
    const isLate = now - this.#armedFor > GRAIN_MS;
    this.#armedFor = Infinity;
    // After a stall of this process, received bytes are read first: the delay was not the upstream's.
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

class SingleRequestTimer implements RequestTimer, UnorderedItem {
  readonly #limits: PhaseLimits;
  readonly #call: TimedRequest;
  readonly #deadlines: SharedRequestTimers;
  readonly started = performance.now();
  at = -1;
  #connectingSince = Infinity;
  /** `undefined`: the request does not wait for the upstream. */
  #waitingSince: number | undefined = this.started;
  #answered = false;

  constructor(limits: PhaseLimits, { call, deadlines }: { call: TimedRequest; deadlines: SharedRequestTimers }) {
    this.#limits = limits;
    this.#call = call;
    this.#deadlines = deadlines;
  }

  /** Fails the request where a limit has passed. Returns when to check again. */
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
