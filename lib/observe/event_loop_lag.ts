/** Measures the delay of the event loop with a timer. */

/** A watch over the event loop. */
export interface EventLoopMonitor {
  /** Longest delay of the last 15 seconds, in milliseconds; 0 while the watch does not run. */
  readonly lagMs: number;
  /** Begins to watch. The function it returns ends that. */
  start(): () => void;
  /** The present delay of a task that is due immediately, in milliseconds. */
  now(): Promise<number>;
}

/** Time between two measurements, in milliseconds. */
const TICK_MS = 500;
/** Measurements that count: those of 15 seconds. */
const TICKS = 30;

/** A watch that does not run yet. `monotonic` in monotonic time in milliseconds. */
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
