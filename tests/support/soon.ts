/** Waiting for events, with a time limit. */
import { inTime } from "../../bench/suite/peer.ts";

/** Longest wait for an event that is immediate except on a busy machine, in milliseconds. */
const SOON_MS = 60_000;

/** Intervals of polling, in milliseconds: at the beginning, and at most. */
const [POLL_MS, MAX_POLL_MS] = [2, 100];

/** Resolves like the promise. @throws {Error} if it does not settle within this many milliseconds, and if it rejects */
export function soon<T>(what: string, promise: Promise<T>, ms: number = SOON_MS): Promise<T> {
  return inTime(promise, `Too late: ${what} took over ${ms} ms`, ms);
}

/** Polls until the condition holds. Returns how long that took, in milliseconds. @throws {Error} if it takes longer than `ms` */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  ms: number = SOON_MS,
): Promise<number> {
  const begun = performance.now();
  while (!await isSo()) {
    if (performance.now() - begun > ms) throw new Error(`Too late: ${what} took over ${ms} ms`);
    await pauseBetweenPolls(begun);
  }
  return performance.now() - begun;
}

/** Calls until a call succeeds. Returns its result. @throws its last error if that takes too long */
export async function eventually<T>(call: () => Promise<T>): Promise<T> {
  for (const begun = performance.now();;) {
    try {
      return await call();
    } catch (error) {
      if (performance.now() - begun > SOON_MS) throw error;
      await pauseBetweenPolls(begun);
    }
  }
}

/** Pauses for a twentieth of the time since the beginning: so a long wait takes little CPU time. */
function pauseBetweenPolls(begun: number): Promise<void> {
  return pause(Math.min(MAX_POLL_MS, Math.max(POLL_MS, (performance.now() - begun) / 20)));
}

/** Resolves after a few milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
