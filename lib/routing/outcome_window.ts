/** Counts successes and failures over a sliding window of time. */

/** Parts of a window. The oldest is dropped as a whole. */
const PARTS = 30;

/** Counts in bounded memory. Times are milliseconds of a monotonic clock. */
export class OutcomeWindow {
  readonly #partMs: number;
  readonly #all = new Float64Array(PARTS);
  readonly #failed = new Float64Array(PARTS);
  /** Number of the current part, counted from time 0. */
  #part = 0;

  constructor(windowMs: number) {
    this.#partMs = windowMs / PARTS;
  }

  add(failed: boolean, now: number): void {
    this.#moveTo(now);
    const at = this.#part % PARTS;
    this.#all[at] = (this.#all[at] ?? 0) + 1;
    if (failed) this.#failed[at] = (this.#failed[at] ?? 0) + 1;
  }

  read(now: number): { samples: number; failures: number } {
    this.#moveTo(now);
    return { samples: sum(this.#all), failures: sum(this.#failed) };
  }

  clear(): void {
    this.#all.fill(0);
    this.#failed.fill(0);
  }

  #moveTo(now: number): void {
    const part = Math.floor(now / this.#partMs);
    const passed = Math.min(PARTS, part - this.#part);
    for (let step = 1; step <= passed; step++) {
      const at = (part - passed + step) % PARTS;
      this.#all[at] = 0;
      this.#failed[at] = 0;
    }
    if (part > this.#part) this.#part = part;
  }
}

function sum(counts: Float64Array): number {
  return counts.reduce((total, count) => total + count, 0);
}
