/** A bound for reads of keys that nobody knows: a crowd of them must not stand in the way of others. */

/** Reads at one time, and reads that wait for their turn. */
const AT_ONCE = 32;
const WAITING = 10_000;

/** Makes the bound. What it returns does some work in its turn. @throws {Error} where too many wait already */
export function createReadQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;

  async function enter(): Promise<void> {
    if (running < AT_ONCE) {
      running++;
      return;
    }
    if (waiting.length >= WAITING) throw new Error("Cannot read the key: too many unknown ones are being read");
    // Whoever leaves hands over its place.
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
