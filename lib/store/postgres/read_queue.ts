/** Bounds the concurrent reads of unknown keys, so that a flood of them does not delay other reads. */

/** Maximum number of concurrent reads, and of waiting reads. */
const MAX_CONCURRENT = 32;
const MAX_WAITING = 10_000;

/** Creates a function that runs reads in order. It rejects if too many reads wait already. */
export function createReadQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;

  async function acquireSlot(): Promise<void> {
    if (running < MAX_CONCURRENT) {
      running++;
      return;
    }
    if (waiting.length >= MAX_WAITING) throw new Error("Cannot read the key: too many unknown keys are being read");
    // A caller that ends passes its slot to the next one.
    await new Promise<void>((resolve) => waiting.push(resolve));
  }

  return async (work) => {
    await acquireSlot();
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
