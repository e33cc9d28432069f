/** Compares values, for sorting. */

/** Compares two amounts, numbers, or texts; texts by their code units. Unlike a difference, it takes infinite numbers. */
export function compareValues<T extends bigint | number | string>(one: T, other: T): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
