/** Enforces the time limits of one request, which reports its progress. */
import { type GatewayError, type LatePhase, upstreamTimeout } from "../errors.ts";
import { type PhaseTimers, TICK_MS, type Ticking } from "../phase_timers.ts";
import type { PhaseLimits } from "./types.ts";

/** A request with time limits. */
export interface TimedRequest {
  /** Called when a limit has passed. */
  fail(error: GatewayError): void;
}

/** Time limits of one request. A limit is noticed up to 40 ms late. Time in which the process is blocked is not counted. */
export class RequestTimer implements Ticking {
  at = -1;
  /** Start of the request, by `performance.now()`. */
  readonly started = performance.now();
  readonly #timers: PhaseTimers;
  readonly #limits: PhaseLimits;
  readonly #call: TimedRequest;
  #answered = false;
  // The times since the start, and for which the request waits for the upstream and for a connection, in milliseconds. The
  // first tick may come immediately, so it does not count.
  #totalMs = -TICK_MS;
  #waitingMs = -TICK_MS;
  #connectingMs = -Infinity;

  /** Starts to time a request, which fails if a phase takes too long. */
  constructor(timers: PhaseTimers, { limits, call }: { limits: PhaseLimits; call: TimedRequest }) {
    this.#timers = timers;
    this.#limits = limits;
    this.#call = call;
    timers.add(this);
  }

  tick(): boolean {
    this.#totalMs += TICK_MS;
    this.#waitingMs += TICK_MS;
    this.#connectingMs += TICK_MS;
    return this.#passedLimit() !== undefined;
  }

  expire(): void {
    const passed = this.at < 0 ? undefined : this.#passedLimit();
    if (passed === undefined) return;
    this.stop();
    this.#call.fail(upstreamTimeout(...passed));
  }

  #passedLimit(): [LatePhase, ms: number] | undefined {
    const { connectMs, firstByteMs, idleMs, totalMs } = this.#limits;
    if (this.#connectingMs >= connectMs) return ["no connection", connectMs];
    if (this.#totalMs >= totalMs) return ["no whole answer", totalMs];
    if (this.#waitingMs < (this.#answered ? idleMs : firstByteMs)) return undefined;
    return this.#answered ? ["nothing more", idleMs] : ["no answer", firstByteMs];
  }

  /** Reports that the request waits for a connection. */
  connecting(): void {
    this.#connectingMs = -TICK_MS;
  }

  /** Reports that the connection is open. */
  connected(): void {
    this.#connectingMs = -Infinity;
  }

  /** Reports that the request waits for the upstream. */
  wait(): void {
    this.#waitingMs = -TICK_MS;
  }

  /** Reports that the head of the response has arrived. */
  head(): void {
    this.#waitingMs = -Infinity;
    if (this.#limits.begins !== "body") this.#answered = true;
  }

  /**
   * Reports that a piece of the body has arrived. Until the next `wait`, only `totalMs` counts, because a slow client
   * is not the upstream's fault.
   */
  progress(): void {
    this.#waitingMs = -Infinity;
    this.#answered = true;
  }

  /** Stops timing the request. */
  stop(): void {
    this.#timers.delete(this);
  }
}
