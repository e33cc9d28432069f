/** How late the event loop is: a timer that should fire in time tells by how much it does not. */

/** A watch over the event loop. */
export interface EventLoopMonitor {
  /** Longest delay of the last 15 seconds, in milliseconds; 0 while the watch does not run. */
  readonly lagMs: number;
  /** Begins to watch. The function it returns ends that. */
  start(): () => void;
  /** How long something that is due at once waits now, in milliseconds. */
  now(): Promise<number>;
}

/** Time between two looks, in milliseconds. */
const TICK_MS = 500;
/** Looks that count: those of 15 seconds. */
const TICKS = 30;

/** A watch that does not run yet. `monotonic` in milliseconds that only grow. */
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
