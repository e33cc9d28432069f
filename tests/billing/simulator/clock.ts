/** A clock that only advances on request. */
import type { StartTimer } from "../../../lib/start_timer.ts";

/** Time of a test. */
export interface Clock {
  /** Unix time in milliseconds: it may jump. */
  now(): number;
  /** Monotonic time in milliseconds. */
  monotonic(): number;
  later: StartTimer;
  /** Advances time. Timers run when they are due, and after each one all work that waits for it. */
  pass(ms: number): Promise<void>;
  /** Sets the wall clock forward or back. */
  jump(ms: number): void;
  /** Calls off all timers. */
  stop(): void;
  /** Timers that are set. */
  readonly timers: number;
}

/** Starts on 2026-11-21 at 12:00 UTC. */
export function createClock(start = Date.UTC(2026, 10, 21, 12)): Clock {
  const timers = new Map<number, { at: number; run: () => void }>();
  let elapsed = 0;
  let offset = start;
  let made = 0;

  function nextDue(until: number): number | undefined {
    let found: number | undefined;
    let at = until;
    for (const [id, timer] of timers) {
      // Those that are due at the same time run in the order in which they were set.
      if (timer.at < at || (timer.at === at && found === undefined)) [found, at] = [id, timer.at];
    }
    return found;
  }

  return {
    now: () => offset + elapsed,
    monotonic: () => elapsed,
    later(run, ms) {
      const id = made++;
      timers.set(id, { at: elapsed + ms, run });
      return () => void timers.delete(id);
    },
    async pass(ms) {
      await settle();
      const until = elapsed + ms;
      for (let due = nextDue(until); due !== undefined; due = nextDue(until)) {
        const timer = timers.get(due);
        timers.delete(due);
        elapsed = Math.max(elapsed, timer?.at ?? 0);
        timer?.run();
        await settle();
      }
      elapsed = until;
    },
    jump: (ms) => void (offset += ms),
    stop: () => timers.clear(),
    get timers() {
      return timers.size;
    },
  };
}

/** Number of microtasks in the longest chain of promises between two calls to the outside. */
const DEPTH = 40;

/** Runs all work that does not wait for a call to the outside. */
export async function settle(): Promise<void> {
  for (let i = 0; i < DEPTH; i++) await undefined;
}
