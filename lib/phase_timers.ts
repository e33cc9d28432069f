/** Phase and idle timers that share timers of the runtime: setting and clearing one of those takes 2 µs. */
import { type UnorderedItem, UnorderedList } from "./unordered_list.ts";

/** A timer for one phase: it expires once unless it is cleared before. */
export interface Timer extends UnorderedItem {
  /** By `performance.now()`. */
  readonly due: number;
  readonly expire: () => void;
}

/** Longest duration of a phase of a stream, in milliseconds, and the call that ends it. */
export interface Phase {
  readonly ms: number;
  readonly expire: () => void;
}

/** Timers may expire this much later than they are due, so that many expire at once, in milliseconds. */
const GRAIN_MS = 10;
/** Time between two looks at the phases of streams, in milliseconds. */
const TICK_MS = 100;
/** Longest delay of the end of a stream's phase, in milliseconds. A phase that must end in time is shorter by it. */
export const MAX_LATE_MS = 2 * TICK_MS;

/** The timers of one app. */
export class PhaseTimers {
  readonly #timers = new UnorderedList<Timer>();
  readonly #streams = new UnorderedList<StreamTimer>();
  #holders = 0;
  #timeout: ReturnType<typeof setTimeout> | undefined;
  #armedFor = Infinity;
  #interval: ReturnType<typeof setInterval> | undefined;

  /** Keeps the timer of the runtime armed until `release`, also while there is nothing to time. */
  hold(): void {
    this.#holders++;
  }

  /** Ends one `hold`. */
  release(): void {
    if (--this.#holders === 0) this.#disarm();
  }

  /** Expires after so many milliseconds, or up to 10 later, in any order. */
  set(ms: number, expire: () => void): Timer {
    const now = performance.now();
    const timer = { due: now + ms, expire, at: -1 };
    this.#timers.add(timer);
    if (timer.due < this.#armedFor) this.#arm(timer.due, now);
    return timer;
  }

  /** Safe at any time. */
  clear(timer: Timer): void {
    this.#timers.delete(timer);
    if (this.#holders === 0) this.#disarm();
  }

  /** A timer for the phases of one stream, one after the other. */
  stream(): StreamTimer {
    return new StreamTimer(this);
  }

  /** For `StreamTimer` only. */
  add(timer: StreamTimer): void {
    this.#streams.add(timer);
    this.#interval ??= setInterval(() => this.#tick(), TICK_MS);
  }

  /** For `StreamTimer` only. */
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
    this.#armedFor = due;
    this.#timeout = setTimeout(() => this.#check(), due - now + 1);
  }

  #disarm(): void {
    if (this.#timers.items.length > 0) return;
    clearTimeout(this.#timeout);
    this.#timeout = undefined;
    this.#armedFor = Infinity;
  }

  #check(): void {
    const now = performance.now();
    this.#armedFor = Infinity;
    for (const timer of this.#timers.items.filter(({ due }) => due <= now)) {
      // A timer that expires may clear another.
      if (timer.at < 0) continue;
      this.clear(timer);
      timer.expire();
    }
    const next = this.#timers.items.reduce((earliest, { due }) => Math.min(earliest, due), Infinity);
    if (next < this.#armedFor) this.#arm(Math.max(next, now + GRAIN_MS), now);
  }
}

/**
 * The timer of one stream: it is in one phase at a time. Time is counted in ticks: no clock is read for each event, and a
 * process that was held up blames neither upstream nor client. A phase is ended up to 200 ms late and never early.
 */
export class StreamTimer implements UnorderedItem {
  at = -1;
  readonly #timers: PhaseTimers;
  #phase: Phase | undefined;
  #elapsedMs = 0;

  constructor(timers: PhaseTimers) {
    this.#timers = timers;
  }

  /** Begins a phase; the one before ends. */
  begin(phase: Phase): void {
    this.#phase = phase;
    // The first tick may come at once.
    this.#elapsedMs = -TICK_MS;
    if (this.at < 0) this.#timers.add(this);
  }

  /** Time in the present phase, in milliseconds; to about 100. */
  get elapsedMs(): number {
    return Math.max(0, this.#elapsedMs);
  }

  /** Ends the present phase. Safe at any time. */
  stop(): void {
    this.#phase = undefined;
    this.#timers.delete(this);
  }

  /** For `PhaseTimers` only. @returns true where the present phase is too long */
  tick(ms: number): boolean {
    this.#elapsedMs += ms;
    return this.#phase !== undefined && this.#elapsedMs >= this.#phase.ms;
  }

  /** For `PhaseTimers` only. */
  expire(): void {
    const phase = this.#phase;
    if (phase === undefined || this.#elapsedMs < phase.ms) return;
    this.stop();
    phase.expire();
  }
}
