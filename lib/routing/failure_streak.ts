/** Counts failures of a target since its last success, by the client key whose request failed. */

/** Most keys; failures of further ones are not counted. */
const MOST_KEYS = 64;

/** Consecutive failures in bounded memory. */
export class FailureStreak {
  readonly #byKey = new Map<string, number>();
  #total = 0;

  /** Failures of all keys. */
  get total(): number {
    return this.#total;
  }

  /** Failures of one key. */
  of(key: string): number {
    return this.#byKey.get(key) ?? 0;
  }

  /** Failures without those of the key that has the most. */
  get withoutWorstKey(): number {
    return this.#total - Math.max(0, ...this.#byKey.values());
  }

  /** Returns true if another key has failed. */
  hasOther(key: string): boolean {
    return this.#total > this.of(key);
  }

  /** Counts failures. */
  add(key: string, count = 1): void {
    const known = this.#byKey.get(key);
    if (known === undefined && this.#byKey.size >= MOST_KEYS) return;
    this.#byKey.set(key, (known ?? 0) + count);
    this.#total += count;
  }

  /** Adds the failures of another streak. */
  addAll(other: FailureStreak): void {
    for (const [key, count] of other.#byKey) this.add(key, count);
  }
}
