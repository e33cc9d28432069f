/** Recent measurements and their percentiles. */

/** Measurements that are kept, and the time that they count, in milliseconds. */
const KEPT = 64;
const KEPT_MS = 300_000;

/** Measurements in bounded memory. */
export class SpeedSamples {
  readonly #kept: { at: number; value: number }[] = [];
  #next = 0;

  add(value: number, now: number): void {
    if (!Number.isFinite(value) || value < 0) return;
    this.#kept[this.#next] = { at: now, value };
    this.#next = (this.#next + 1) % KEPT;
  }

  /** Returns the least number that this share (0 to 1) of the measurements does not exceed, if there are any. */
  percentile(share: number, now: number): number | undefined {
    const values = this.#sorted(now);
    return values[rank(values.length, share)];
  }

  /** Returns the greatest number that this share (0 to 1) of the measurements reaches, if there are any. */
  reached(share: number, now: number): number | undefined {
    const values = this.#sorted(now).reverse();
    return values[rank(values.length, share)];
  }

  #sorted(now: number): number[] {
    return this.#kept.filter(({ at }) => now - at < KEPT_MS).map(({ value }) => value).sort((a, b) => a - b);
  }
}

function rank(count: number, share: number): number {
  return Math.max(0, Math.ceil(count * share) - 1);
}
