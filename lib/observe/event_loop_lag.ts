/** Measures the delay of the event loop: how much later than planned a timer runs. */

/** Monitors the delay of the event loop. */
export interface EventLoopMonitor {
  /** Longest delay of the last 15 seconds, in milliseconds; 0 while the monitor is stopped. */
  readonly lagMs: number;
  /** Starts the monitor. The returned function stops it. */
  start(): () => void;
  /** Measures how long a task waits for the event loop now, in milliseconds. */
  now(): Promise<number>;
}

/** Interval between two measurements, in milliseconds. */
const INTERVAL_MS = 500;
/** Number of measurements that are kept: those of 15 seconds. */
const KEPT_MEASUREMENTS = 30;

/** Creates a monitor, which must be started. @param monotonic time in milliseconds that never goes back */
export function createEventLoopMonitor(monotonic: () => number): EventLoopMonitor {
  const lags = new Float64Array(KEPT_MEASUREMENTS);
  let next = 0;
  return {
    get lagMs() {
      return Math.max(...lags);
    },
    start() {
      let last = monotonic();
      const timer = setInterval(() => {
        const now = monotonic();
        lags[next] = Math.max(0, now - last - INTERVAL_MS);
        next = (next + 1) % KEPT_MEASUREMENTS;
        last = now;
      }, INTERVAL_MS);
      return () => clearInterval(timer);
    },
    async now() {
      const startedAt = monotonic();
      await new Promise<void>((resolve) => setTimeout(resolve, 0));
      return monotonic() - startedAt;
    },
  };
}
