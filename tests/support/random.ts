/**
 * Random values from a seed: the same seed gives the same run. The functions need no `this`, so they can be passed
 * alone.
 */

/** Random values of one sequence. */
export interface Random {
  /** From 0 up to, not including, 1: fits the `random` parameters of lib. */
  next: () => number;
  /** A whole number from 0 up to, not including, the limit. */
  below: (limit: number) => number;
  /** True with this probability. */
  chance: (probability: number) => boolean;
  /** One item of a list; throws if it is empty. */
  pick: <Item>(list: readonly Item[]) => Item;
  /**
   * The items in another order. It does not use `sort()` with a random comparison: the number of comparisons depends on
   * V8's compiler, and so would all later random values.
   */
  shuffled: <Item>(items: readonly Item[]) => Item[];
}

/** Mulberry32: small, fast, good enough to choose by. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick(list) {
      if (list.length === 0) throw new RangeError("Cannot pick: the list is empty");
      return list[below(list.length)] as typeof list[number];
    },
    shuffled(items) {
      const left = [...items];
      return items.flatMap(() => left.splice(below(left.length), 1));
    },
  };
}
