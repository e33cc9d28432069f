/**
 * A strict sliding window: never more than the limit within any 60 seconds. An amount counts until its whole bucket is
 * older than 60 seconds, so throughput is at most 0.9 % below the limit.
 */

/** Time for which an amount counts, in milliseconds. */
export const WINDOW_MS = 60_000;

/** Width of a bucket, in milliseconds. */
export const BUCKET_MS = 500;

/** End of an amount counted now. All times are milliseconds of a monotonic clock. */
export function windowEnd(now: number): number {
  return (Math.floor(now / BUCKET_MS) + 1) * BUCKET_MS + WINDOW_MS;
}

/** End of a lease that begins now, rounded up to a bucket. */
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

  /** Sum of the amounts that count now. */
  sum(now: number): number {
    this.#forget(now);
    return this.#sum;
  }

  /** Returns the exact wait until a cost fits within a limit, in milliseconds: 0 none, `Infinity` never. */
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
    this.#forget(now);
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

  /** Removes an amount added with this end, if it still counts. @throws {RangeError} as `add` */
  remove(amount: number, end: number): void {
    checkAmount(amount);
    const at = this.#find(end);
    const bucket = this.#buckets[at];
    if (bucket?.end !== end) return;
    const returned = Math.min(amount, bucket.amount);
    bucket.amount -= returned;
    this.#sum -= returned;
    if (bucket.amount > 0) return;
    if (at === this.#buckets.length - 1) this.#buckets.pop();
    else this.#buckets.splice(at, 1);
  }

  /**
   * Replaces an added estimate by the actual amount. A surplus is removed if it still counts; a deficit is added to the
   * same bucket, or to the current one if that has ended, even above the limit.
   * @throws {RangeError} if the actual amount is not a non-negative integer
   */
  correct(added: number, { actual, end, now }: { actual: number; end: number; now: number }): void {
    checkAmount(actual);
    if (actual < added) this.remove(added - actual, end);
    else this.add(actual - added, end > now ? end : windowEnd(now));
  }

  #forget(now: number): void {
    for (let first = this.#buckets[0]; first !== undefined && first.end <= now; first = this.#buckets[0]) {
      this.#sum -= first.amount;
      this.#buckets.shift();
    }
  }

  /** Index of the first bucket with this end or a later one. */
  #find(end: number): number {
    const buckets = this.#buckets;
    let low = 0;
    let high = buckets.length;
    // Most amounts belong to the last bucket.
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

/** Checks an amount: `NaN` would corrupt the sum. */
function checkAmount(amount: number): void {
  if (!Number.isSafeInteger(amount) || amount < 0) {
    throw new RangeError(`Cannot count ${amount}: it is not a non-negative integer`);
  }
}
