/** Times work for the benches. */

/** Milliseconds that `work` takes, and the longest time the event loop did not come round. */
export async function watch<T>(work: () => Promise<T>): Promise<{ value: T; ms: number; stallMs: number }> {
  let last = performance.now();
  let stallMs = 0;
  const tick = () => {
    const now = performance.now();
    stallMs = Math.max(stallMs, now - last);
    last = now;
  };
  const timer = setInterval(tick, 1);
  const start = performance.now();
  const value = await work();
  const ms = performance.now() - start;
  tick();
  clearInterval(timer);
  return { value, ms, stallMs };
}
