/**
 * Cheap timers for the phases of requests. All share one runtime timer, because setting and clearing one takes 2 µs.
 */
import { type UnorderedItem, UnorderedList } from "./unordered_list.ts";

/** A timer for one phase: it expires once unless it is cleared before. */
export interface Timer extends UnorderedItem {
  /** Time at which it expires, by `PhaseTimers.now`. */
  readonly due: number;
  readonly expire: () => void;
}

/** A phase of a stream with a time limit. */
export interface Phase {
  /** Longest duration, in milliseconds. */
  readonly ms: number;
  /** Called once if the phase lasts longer. */
  readonly expire: () => void;
}

/** Lateness that a timer may have, in milliseconds, so that one runtime timer serves many. */
const GRAIN_MS = 10;
/** Longest time between two checks of the timers, in milliseconds. The clock learns of a blocked process from them. */
const MAX_WAIT_MS = 1_000;
/** Lateness of a check from which on the process was blocked, in milliseconds. */
const BLOCKED_MS = 500;
/** Interval between two checks of the phases of streams, in milliseconds. */
const TICK_MS = 100;
/**
 * Lateness that a stream's phase may have, in milliseconds. A caller with a deadline sets the phase that much shorter.
 */
export const MAX_LATE_MS = 2 * TICK_MS;

/** The timers of one app. */
export class PhaseTimers {
  readonly #timers = new UnorderedList<Timer>();
  readonly #streams = new UnorderedList<StreamTimer>();
  #holders = 0;
  #timeout: ReturnType<typeof setTimeout> | undefined;
  /** Time of the next check, by `performance.now()`. */
  #nextCheck = Infinity;
  #blockedMs = 0;
  #interval: ReturnType<typeof setInterval> | undefined;

  /** Keeps the runtime timer armed until `release`, even while no timer is set. */
  hold(): void {
    this.#holders++;
  }

  /** Ends one `hold`. */
  release(): void {
    if (--this.#holders === 0) this.#disarm();
  }

  /**
   * Returns a time in milliseconds that stops while the process is blocked or stopped. It notices blocks from 0.5 s on,
   * while a timer is set, and counts up to a second of each.
   */
  now(): number {
    const real = performance.now();
    const lateMs = real - this.#nextCheck;
    if (lateMs > BLOCKED_MS) {
      this.#blockedMs += lateMs;
      this.#nextCheck = real;
    }
    return real - this.#blockedMs;
  }

  /**
   * Sets a timer that expires after `ms` milliseconds, or up to 10 later. Timers may expire in any order. Time in which
   * the process is blocked does not count, by `now`.
   */
  set(ms: number, expire: () => void): Timer {
    const now = this.now();
    const timer = { due: now + ms, expire, at: -1 };
    this.#timers.add(timer);
    if (timer.due + this.#blockedMs < this.#nextCheck) this.#arm(timer.due, now);
    return timer;
  }

  /** Clears a timer; does nothing if it has expired or was cleared before. */
  clear(timer: Timer): void {
    this.#timers.delete(timer);
    if (this.#holders === 0) this.#disarm();
  }

  /** Creates a timer for the successive phases of one stream. */
  stream(): StreamTimer {
    return new StreamTimer(this);
  }

  /** Starts the ticks of a stream's timer. For `StreamTimer` only. */
  add(timer: StreamTimer): void {
    this.#streams.add(timer);
    this.#interval ??= setInterval(() => this.#tick(), TICK_MS);
  }

  /** Stops the ticks of a stream's timer. For `StreamTimer` only. */
  delete(timer: StreamTimer): void {
    this.#streams.delete(timer);
    if (this.#streams.items.length > 0) return;
    clearInterval(this.#interval);
    this.#interval = undefined;
  }

  #tick(): void {
    const expired = this.#streams.items.filter((timer) => timer.tick(TICK_MS));
    for (const timer of expired) timer.expire();
  }

  #arm(due: number, now: number): void {
    clearTimeout(this.#timeout);
    const waitMs = Math.min(due - now, MAX_WAIT_MS);
    this.#nextCheck = now + this.#blockedMs + waitMs;
    this.#timeout = setTimeout(() => this.#check(), waitMs + 1);
  }

  #disarm(): void {
    if (this.#timers.items.length > 0) return;
    clearTimeout(this.#timeout);
    this.#timeout = undefined;
    this.#nextCheck = Infinity;
  }

  #check(): void {
    const now = this.now();
    this.#nextCheck = Infinity;
    for (const timer of this.#timers.items.filter(({ due }) => due <= now)) {
      // A timer that expired just before may have cleared this one.
      if (timer.at < 0) continue;
      this.clear(timer);
      timer.expire();
    }
    const next = this.#timers.items.reduce((least, { due }) => Math.min(least, due), Infinity);
    if (next + this.#blockedMs < this.#nextCheck) this.#arm(Math.max(next, now + GRAIN_MS), now);
  }
}

/**
 * The timer of one stream, which is in one phase at a time. It counts ticks instead of reading a clock for each event.
 * Ticks also stop while the process is blocked, so that this time is not counted against upstream or client. A phase
 * expires up to 200 ms late and never early.
 */
export class StreamTimer implements UnorderedItem {
  at = -1;
  readonly #timers: PhaseTimers;
  #phase: Phase | undefined;
  #elapsedMs = 0;

  constructor(timers: PhaseTimers) {
    this.#timers = timers;
  }

  /** Begins a phase and ends the one before. */
  begin(phase: Phase): void {
    this.#phase = phase;
    // The first tick may come immediately, so it does not count.
    this.#elapsedMs = -TICK_MS;
    if (this.at < 0) this.#timers.add(this);
  }

  /** Time in the present phase, in milliseconds, to about 100. */
  get elapsedMs(): number {
    return Math.max(0, this.#elapsedMs);
  }

  /** Ends the present phase; does nothing if there is none. */
  stop(): void {
    this.#phase = undefined;
    this.#timers.delete(this);
  }

  /** Counts a tick. For `PhaseTimers` only. @returns whether the present phase has lasted too long */
  tick(ms: number): boolean {
    this.#elapsedMs += ms;
    return this.#phase !== undefined && this.#elapsedMs >= this.#phase.ms;
  }

  /** Ends the present phase and calls its `expire`, if it has lasted too long. For `PhaseTimers` only. */
  expire(): void {
    const phase = this.#phase;
    if (phase === undefined || this.#elapsedMs < phase.ms) return;
    this.stop();
    phase.expire();
  }
}
