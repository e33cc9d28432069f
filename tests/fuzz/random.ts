/** Chance that can be had again: the same seed, the same run. */

/** Numbers from 0 up to 1. */
export type Random = () => number;

/** Numbers from 0 up to 1, the same for the same seed (mulberry32). */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One of them. */
export function pick<T>(values: readonly T[], random: Random): T {
  return values[below(values.length, random)] as T;
}

/** A whole number from 0 up to, not including, the bound. */
export function below(bound: number, random: Random): number {
  return Math.floor(random() * bound);
}
