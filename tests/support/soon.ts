/** Waiting for events, with a time limit. */
import { inTime } from "../../bench/suite/peer.ts";

/** Longest wait for an event that is immediate except on a busy machine, in milliseconds. */
const SOON_MS = 20_000;

/** Resolves like the promise. @throws {Error} if it does not settle within this many milliseconds, and if it rejects */
export function soon<T>(what: string, promise: Promise<T>, ms: number = SOON_MS): Promise<T> {
  return inTime(promise, `Too late: ${what} took over ${ms} ms`, ms);
}

/** Waits until something is so. @throws {Error} if that takes too long */
export async function until(what: string, isSo: () => boolean): Promise<void> {
  const end = performance.now() + SOON_MS;
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`Too late: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Repeats a check until it passes. @throws the last error where that takes too long */
export async function eventually(check: () => Promise<void>): Promise<void> {
  for (const end = performance.now() + SOON_MS;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
}
