/** Compares values, for sorting. */

/** Compares two amounts, numbers, or texts; texts by their code units. Unlike a difference, it takes infinite numbers. */
export function compareValues<T extends bigint | number | string>(one: T, other: T): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
