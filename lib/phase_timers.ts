/**
 * Cheap timers for the phases of requests, upstream calls and streams. They count the ticks of one interval instead of
 * reading a clock: setting and clearing a timer of the runtime takes 2 µs.
 */
import { type UnorderedItem, UnorderedList } from "./unordered_list.ts";

/** A phase with a time limit. */
export interface Phase {
  /** Longest duration, in milliseconds. It is read at each tick. */
  readonly ms: number;
  /** Called once if the phase lasts longer. */
  readonly expire: () => void;
}

/** A timer that the shared clock ticks. */
export interface Ticking extends UnorderedItem {
  /** Counts a tick. @returns true if a phase has lasted too long */
  tick(): boolean;
  /** Handles a phase that has lasted too long; does nothing if it has ended meanwhile. */
  expire(): void;
}

/** Interval between two ticks, in milliseconds. */
export const TICK_MS = 20;
/** Maximum delay of a timer, in milliseconds. A caller with a deadline makes its phase shorter by this time. */
export const MAX_LATE_MS = 2 * TICK_MS;

/**
 * The timers of one server or client. While the process is blocked there are no ticks, so that this time counts against
 * no client and no upstream.
 */
export class PhaseTimers {
  readonly #timers = new UnorderedList<Ticking>();
  #interval: ReturnType<typeof setInterval> | undefined;
  #lingers: boolean;

  /**
   * @param options `lingers`: until `close`, the interval ends at its first tick without timers, not with the last timer:
   * starting and ending it for each request would take 4 µs
   */
  constructor({ lingers = false }: { lingers?: boolean } = {}) {
    this.#lingers = lingers;
  }

  /** Starts a timer that expires after `ms` milliseconds, or up to 40 later. */
  set(ms: number, expire: () => void): PhaseTimer {
    const timer = new PhaseTimer(this);
    timer.begin({ ms, expire });
    return timer;
  }

  /** Ends the interval with the last timer. */
  close(): void {
    this.#lingers = false;
    this.#stopIfIdle();
  }

  /** Starts the ticks of a timer that has none. */
  add(timer: Ticking): void {
    this.#timers.add(timer);
    this.#interval ??= setInterval(() => this.#tick(), TICK_MS);
  }

  /** Stops the ticks of a timer. */
  delete(timer: Ticking): void {
    this.#timers.delete(timer);
    if (!this.#lingers) this.#stopIfIdle();
  }

  #tick(): void {
    const expired = this.#timers.items.filter((timer) => timer.tick());
    for (const timer of expired) timer.expire();
    this.#stopIfIdle();
  }

  #stopIfIdle(): void {
    if (this.#timers.items.length > 0) return;
    clearInterval(this.#interval);
    this.#interval = undefined;
  }
}

/** A timer, which is in one phase at a time or in none. A phase expires up to 40 ms late and never early. */
export class PhaseTimer implements Ticking {
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

  /** Time in the current phase, in milliseconds, to about 20. */
  get elapsedMs(): number {
    return Math.max(0, this.#elapsedMs);
  }

  /** Ends the current phase; does nothing if there is none. */
  stop(): void {
    this.#phase = undefined;
    this.#timers.delete(this);
  }

  tick(): boolean {
    this.#elapsedMs += TICK_MS;
    return this.#phase !== undefined && this.#elapsedMs >= this.#phase.ms;
  }

  expire(): void {
    const phase = this.#phase;
    if (phase === undefined || this.#elapsedMs < phase.ms) return;
    this.stop();
    phase.expire();
  }
}
