/** Measures long work: its CPU time, and the turns of the event loop during it. */
import process from "node:process";

/** A measurement of the event loop. */
export interface Turns {
  /** Number of turns since the last call, or the start. */
  count(): number;
  /** The longest so far, in milliseconds. */
  longest(): number;
  /** The longest work within one turn so far, in milliseconds: a busy machine does not make it longer. */
  longestWork(): number;
  [Symbol.dispose](): void;
}

/**
 * CPU time of this thread, in milliseconds; of the whole process where the system has no such figure. A busy machine does
 * not make it longer.
 */
export function workedMs(): number {
  try {
    return Number.parseInt(Deno.readTextFileSync("/proc/thread-self/schedstat")) / 1_000_000;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
}

/** Starts the measurement. */
export function watchTurns(): Turns {
  let turns = 0;
  let longest = 0;
  let longestWork = 0;
  let last = performance.now();
  let worked = workedMs();
  const timer = setInterval(() => {
    turns++;
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
    longestWork = Math.max(longestWork, workedMs() - worked);
    worked = workedMs();
  }, 1);
  return {
    count() {
      const counted = turns;
      turns = 0;
      return counted;
    },
    longest: () => longest,
    longestWork: () => longestWork,
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
