/** Measures round trips to a server, and bounds the wait for an answer. */
import { settlesWithin } from "../abort.ts";

/** Number of measurements. The shortest counts, because longer ones include other waits. */
const MEASUREMENTS = 5;

/**
 * Returns the shortest duration of several requests, in milliseconds.
 * @param request sends one and awaits its answer
 */
export async function shortestRoundTrip(request: () => Promise<unknown>): Promise<number> {
  let shortest = Infinity;
  for (let measurement = 0; measurement < MEASUREMENTS; measurement++) {
    const startedAt = performance.now();
    await request();
    shortest = Math.min(shortest, performance.now() - startedAt);
  }
  return shortest;
}

/** Formats a duration, such as `0.4 ms` or `12 ms`. */
export function formatMs(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/** Waits for a promise, but at most `timeoutMs` milliseconds. @throws {Error} if it takes longer */
export async function withTimeout(timeoutMs: number, promise: Promise<unknown>): Promise<void> {
  if (!await settlesWithin(timeoutMs, promise)) throw new Error(`no answer within ${timeoutMs / 1000} s`);
}
