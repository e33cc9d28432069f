/** Bounds concurrent reads of unknown keys, so that a flood of them does not delay other reads. */

/** Concurrent reads, and most waiting reads. */
const AT_ONCE = 32;
const WAITING = 10_000;

/** Creates the queue: a function that runs work in order. @throws {Error} if too many reads wait already */
export function createReadQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;

  async function enter(): Promise<void> {
    if (running < AT_ONCE) {
      running++;
      return;
    }
    if (waiting.length >= WAITING) throw new Error("Cannot read the key: too many unknown keys are being read");
    // A caller that ends passes its slot to the next one.
    await new Promise<void>((resolve) => waiting.push(resolve));
  }

  return async (work) => {
    await enter();
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
