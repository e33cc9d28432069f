/** Waiting for events, with a time limit. */
import { inTime } from "../../bench/suite/peer.ts";

/** Longest wait for an event that is immediate except on a busy machine, in milliseconds. */
const SOON_MS = 60_000;

/** Interval of polling, in milliseconds. */
const POLL_MS = 2;

/** Resolves like the promise. @throws {Error} if it does not settle within this many milliseconds, and if it rejects */
export function soon<T>(what: string, promise: Promise<T>, ms: number = SOON_MS): Promise<T> {
  return inTime(promise, `Too late: ${what} took over ${ms} ms`, ms);
}

/** Polls until something is so. Returns how long that took, in milliseconds. @throws {Error} if it takes longer than `ms` */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  ms: number = SOON_MS,
): Promise<number> {
  const begun = performance.now();
  while (!await isSo()) {
    if (performance.now() - begun > ms) throw new Error(`Too late: ${what} took over ${ms} ms`);
    await pause(POLL_MS);
  }
  return performance.now() - begun;
}

/** Calls until a call succeeds. Returns its result. @throws its last error if that takes too long */
export async function eventually<T>(call: () => Promise<T>): Promise<T> {
  for (const end = performance.now() + SOON_MS;;) {
    try {
      return await call();
    } catch (error) {
      if (performance.now() > end) throw error;
      await pause(POLL_MS);
    }
  }
}

/** Resolves after some milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
