/** Measures the delay of the event loop with a timer. */

/** Monitors the event loop. */
export interface EventLoopMonitor {
  /** Longest delay of the last 15 seconds, in milliseconds; 0 while the monitor is stopped. */
  readonly lagMs: number;
  /** Starts the monitor. The returned function stops it. */
  start(): () => void;
  /** The current delay of an immediate task, in milliseconds. */
  now(): Promise<number>;
}

/** Interval of measurements, in milliseconds. */
const TICK_MS = 500;
/** Measurements kept: those of 15 seconds. */
const TICKS = 30;

/**
 * Creates a stopped monitor.
 * @param monotonic monotonic clock in milliseconds
 */
export function createEventLoopMonitor(monotonic: () => number): EventLoopMonitor {
  const lags = new Float64Array(TICKS);
  let at = 0;
  return {
    get lagMs() {
      return Math.max(...lags);
    },
    start() {
      let last = monotonic();
      const timer = setInterval(() => {
        const now = monotonic();
        lags[at] = Math.max(0, now - last - TICK_MS);
        at = (at + 1) % TICKS;
        last = now;
      }, TICK_MS);
      return () => clearInterval(timer);
    },
    async now() {
      const from = monotonic();
      await new Promise<void>((resolve) => setTimeout(resolve, 0));
      return monotonic() - from;
    },
  };
}
