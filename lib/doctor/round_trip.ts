/** Measures round trips to a server. */

/** Number of measurements; the shortest counts, as the others include other waits. */
const ROUNDS = 5;

/** The shortest time of a few questions, in milliseconds. */
export async function shortestRoundTrip(ask: () => Promise<unknown>): Promise<number> {
  let shortest = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const startedAt = performance.now();
    await ask();
    shortest = Math.min(shortest, performance.now() - startedAt);
  }
  return shortest;
}

/** A time for people: `0.4 ms`, `12 ms`. */
export function formatMs(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/** Waits at most this long, in milliseconds. @throws {Error} where it takes longer */
export async function withTimeout<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
