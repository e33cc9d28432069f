/** Turns of the event loop while something long goes on. */
import process from "node:process";

/** A look at the event loop. */
export interface Turns {
  /** How many there were since the last call, or the start. */
  count(): number;
  /** The longest so far, in milliseconds. */
  longest(): number;
  /** The most that was worked in one so far, in milliseconds: a machine that is busy with other things makes it no longer. */
  longestWork(): number;
  [Symbol.dispose](): void;
}

/** Starts to look. */
export function watchTurns(): Turns {
  let turns = 0;
  let longest = 0;
  let longestWork = 0;
  let last = performance.now();
  let worked = process.cpuUsage();
  const timer = setInterval(() => {
    turns++;
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
    const { user, system } = process.cpuUsage(worked);
    longestWork = Math.max(longestWork, (user + system) / 1_000);
    worked = process.cpuUsage();
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
