/**
 * A strict sliding window: it never admits more than the limit within any 60 seconds. An amount counts until its whole
 * bucket is older than 60 seconds, which lowers the throughput by at most 0.9 %.
 */

/** Time for which an amount counts, in milliseconds. */
export const WINDOW_MS = 60_000;

/** Width of a bucket, in milliseconds. */
export const BUCKET_MS = 500;

/** Returns when an amount that is counted now stops counting. All times are milliseconds of a monotonic clock. */
export function windowEnd(now: number): number {
  return (Math.floor(now / BUCKET_MS) + 1) * BUCKET_MS + WINDOW_MS;
}

/** Returns the end of a lease that begins now, rounded up to the end of a bucket. */
export function leaseEnd(now: number, forMs: number): number {
  return Math.ceil((now + forMs) / BUCKET_MS) * BUCKET_MS;
}

/** Sum of the amounts with the same end. */
interface Bucket {
  end: number;
  amount: number;
}

/** Amounts that count until their end: requests and tokens, or slots with leases. */
export class Window {
  /** Non-empty buckets, ordered by end. */
  readonly #buckets: Bucket[] = [];
  #sum = 0;

  /** Returns the sum of the amounts that count now. */
  sum(now: number): number {
    this.#dropEnded(now);
    return this.#sum;
  }

  /** Returns the milliseconds until a cost fits within a limit: 0 if it fits now, `Infinity` if it never will. */
  waitFor(cost: number, { limit, now }: { limit: number; now: number }): number {
    let excess = this.sum(now) + cost - limit;
    if (excess <= 0) return 0;
    for (const { end, amount } of this.#buckets) {
      excess -= amount;
      if (excess <= 0) return end - now;
    }
    return Infinity;
  }

  /** Returns the milliseconds until nothing counts. */
  resetMs(now: number): number {
    this.#dropEnded(now);
    const last = this.#buckets[this.#buckets.length - 1];
    return last === undefined ? 0 : last.end - now;
  }

  /** Adds an amount that counts until `end`. @throws {RangeError} if it is not a non-negative integer */
  add(amount: number, end: number): void {
    checkAmount(amount);
    if (amount === 0) return;
    const at = this.#find(end);
    const bucket = this.#buckets[at];
    if (bucket?.end === end) bucket.amount += amount;
    else if (bucket === undefined) this.#buckets.push({ end, amount });
    else this.#buckets.splice(at, 0, { end, amount });
    this.#sum += amount;
  }

  /** Removes an amount that was added with this end, if it still counts. @throws {RangeError} as `add` does */
  remove(amount: number, end: number): void {
    checkAmount(amount);
    const at = this.#find(end);
    const bucket = this.#buckets[at];
    if (bucket?.end !== end) return;
    const removed = Math.min(amount, bucket.amount);
    bucket.amount -= removed;
    this.#sum -= removed;
    if (bucket.amount > 0) return;
    if (at === this.#buckets.length - 1) this.#buckets.pop();
    else this.#buckets.splice(at, 1);
  }

  /**
   * Replaces an estimate with the actual amount. A surplus is removed if it still counts. A deficit is added to the
   * same bucket, or to the current one if that bucket has ended, even if the sum then exceeds the limit.
   * @throws {RangeError} if the actual amount is not a non-negative integer
   */
  correct(added: number, { actual, end, now }: { actual: number; end: number; now: number }): void {
    checkAmount(actual);
    if (actual < added) this.remove(added - actual, end);
    else this.add(actual - added, end > now ? end : windowEnd(now));
  }

  #dropEnded(now: number): void {
    for (let first = this.#buckets[0]; first !== undefined && first.end <= now; first = this.#buckets[0]) {
      this.#sum -= first.amount;
      this.#buckets.shift();
    }
  }

  /** Returns the index of the first bucket with this end or a later one. */
  #find(end: number): number {
    const buckets = this.#buckets;
    let low = 0;
    let high = buckets.length;
    // Fast path: most amounts belong to the last bucket.
    const last = buckets[high - 1];
    if (last === undefined || last.end < end) return high;
    if (last.end === end) return high - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((buckets[middle]?.end ?? end) < end) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Checks an amount: `NaN` would corrupt the sum. @throws {RangeError} */
function checkAmount(amount: number): void {
  if (!Number.isSafeInteger(amount) || amount < 0) {
    throw new RangeError(`Cannot count ${amount}: it is not a non-negative integer`);
  }
}
