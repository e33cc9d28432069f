/** What was measured lately, and its percentiles. */

/** Measurements that are kept, and for how long, in milliseconds: what nobody uses any more is soon not known any more. */
const KEPT = 64;
const KEPT_MS = 300_000;

/** Numbers by the time they were measured at, in bounded memory. */
export class Measures {
  readonly #kept: { at: number; value: number }[] = [];
  #next = 0;

  add(value: number, now: number): void {
    if (!Number.isFinite(value) || value < 0) return;
    this.#kept[this.#next] = { at: now, value };
    this.#next = (this.#next + 1) % KEPT;
  }

  /**
   * The number that this share of the measurements does not exceed: `undefined` where there are none.
   * @param share from 0 to 1
   */
  percentile(share: number, now: number): number | undefined {
    const values = this.#kept.filter(({ at }) => now - at < KEPT_MS).map(({ value }) => value).sort((a, b) => a - b);
    return values[Math.max(0, Math.ceil(values.length * share) - 1)];
  }
}
