/** Enforces the time limits of requests, with one timer of the runtime for all of them. */
import { type UnorderedItem, UnorderedList } from "../unordered_list.ts";
import { type GatewayError, upstreamTimeout } from "../errors.ts";
import type { PhaseLimits } from "./types.ts";

/** A request with time limits. */
export interface TimedRequest {
  /** Called when a limit has passed. */
  fail(error: GatewayError): void;
}

/** Longest delay with which a limit is noticed, in milliseconds. It lets one timer check many requests. */
const GRANULARITY_MS = 20;

/** The timers of one client. */
export class RequestTimers {
  readonly #calls = new UnorderedList<RequestTimer>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #dueAt = Infinity;
  #closed = false;
  #postponed = false;

  /** Starts to time a request, which fails if a phase takes too long. */
  start(limits: PhaseLimits, call: TimedRequest): RequestTimer {
    const timer = new RequestTimer(limits, { call, timers: this });
    this.#calls.add(timer);
    this.arm(timer.check(timer.started), timer.started);
    return timer;
  }

  /** Stops when the current requests have ended. */
  close(): void {
    this.#closed = true;
    if (this.#calls.items.length === 0) this.#stopTimer();
  }

  /** Makes sure that the requests are checked at `due` or earlier. */
  arm(due: number, now: number): void {
    if (due >= this.#dueAt || this.#calls.items.length === 0) return;
    clearTimeout(this.#timer);
    this.#dueAt = Math.max(due, now);
    this.#timer = setTimeout(() => this.#check(), this.#dueAt - now + 1);
    // The timer need not keep the process alive: requests do.
    Deno.unrefTimer(this.#timer);
  }

  /** Stops timing a request. */
  forget(call: RequestTimer): void {
    this.#calls.delete(call);
    if (this.#closed && this.#calls.items.length === 0) this.#stopTimer();
  }

  #check(): void {
    const now = performance.now();
    const isLate = now - this.#dueAt > GRANULARITY_MS;
    this.#dueAt = Infinity;
    if (this.#calls.items.length === 0) return;
    // If this process stalled, the upstream did not cause the delay. So bytes that have arrived are read before the
    // check.
    this.#postponed = isLate && !this.#postponed;
    if (this.#postponed) return this.arm(now + GRANULARITY_MS, now);
    let next = Infinity;
    for (const call of [...this.#calls.items]) next = Math.min(next, call.check(now));
    if (next < Infinity) this.arm(Math.max(next, now + GRANULARITY_MS), now);
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#dueAt = Infinity;
  }
}

/** Enforces the time limits of one request, which reports its progress. */
export class RequestTimer implements UnorderedItem {
  readonly #limits: PhaseLimits;
  readonly #call: TimedRequest;
  readonly #timers: RequestTimers;
  /** Start of the request, by `performance.now()`. */
  readonly started = performance.now();
  /** Index in the list of timers. */
  at = -1;
  #connectingSince = Infinity;
  /** Since when the request waits for the upstream; `undefined` if it does not wait. */
  #waitingSince: number | undefined = this.started;
  #answered = false;

  constructor(limits: PhaseLimits, { call, timers }: { call: TimedRequest; timers: RequestTimers }) {
    this.#limits = limits;
    this.#call = call;
    this.#timers = timers;
  }

  /** Fails the request if a limit has passed. @returns when to check again */
  check(now: number): number {
    const { connectMs, firstByteMs, idleMs, totalMs } = this.#limits;
    const totalEnd = this.started + totalMs;
    const phaseMs = this.#answered ? idleMs : firstByteMs;
    const phaseEnd = (this.#waitingSince ?? now) + phaseMs;
    const connectEnd = this.#connectingSince + connectMs;
    const end = Math.min(phaseEnd, totalEnd, connectEnd);
    if (now < end) return end;
    this.stop();
    if (end === connectEnd) this.#call.fail(upstreamTimeout("no connection", connectMs));
    else if (end === totalEnd) this.#call.fail(upstreamTimeout("no whole answer", totalMs));
    else this.#call.fail(upstreamTimeout(this.#answered ? "nothing more" : "no answer", phaseMs));
    return Infinity;
  }

  /** Reports that the request waits for a connection. */
  connecting(): void {
    const now = performance.now();
    this.#connectingSince = now;
    this.#timers.arm(now + this.#limits.connectMs, now);
  }

  /** Reports that the connection is open. */
  connected(): void {
    this.#connectingSince = Infinity;
  }

  /** Reports that the request waits for the upstream. */
  wait(): void {
    const now = performance.now();
    this.#waitingSince = now;
    if (this.#answered) this.#timers.arm(now + this.#limits.idleMs, now);
  }

  /** Reports that the head of the response has arrived. */
  head(): void {
    this.#waitingSince = undefined;
    if (this.#limits.begins !== "body") this.#answered = true;
  }

  /**
   * Reports that a piece of the body has arrived. Until the next `wait`, only `totalMs` counts, because a slow client
   * is not the upstream's fault.
   */
  progress(): void {
    this.#waitingSince = undefined;
    this.#answered = true;
  }

  /** Stops timing the request. */
  stop(): void {
    this.#timers.forget(this);
  }
}
