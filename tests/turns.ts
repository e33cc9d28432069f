/** Turns of the event loop while something long goes on. */

/** A look at the event loop. */
export interface Turns {
  /** How many there were since the last call, or the start. */
  count(): number;
  /** The longest so far, in milliseconds. */
  longest(): number;
  [Symbol.dispose](): void;
}

/** Starts to look. */
export function watchTurns(): Turns {
  let turns = 0;
  let longest = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    turns++;
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }, 1);
  return {
    count() {
      const counted = turns;
      turns = 0;
      return counted;
    },
    longest: () => longest,
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
