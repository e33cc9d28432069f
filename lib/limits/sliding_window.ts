/**
 * An exact sliding window: never more than a limit within any 60 seconds. An amount counts until its whole bucket lies
 * before the last 60 seconds, so no window holds more than the limit, and at most 0.9 % less is admitted.
 */

/** Time that an amount counts, in milliseconds. */
export const WINDOW_MS = 60_000;

/** Width of a bucket, in milliseconds. */
export const BUCKET_MS = 500;

/** End of an amount that is taken now. All times here are milliseconds of a monotonic clock. */
export function windowEnd(now: number): number {
  return (Math.floor(now / BUCKET_MS) + 1) * BUCKET_MS + WINDOW_MS;
}

/** End of the lease of a slot that is taken now: the end of the bucket in which its time ends. */
export function leaseEnd(now: number, forMs: number): number {
  return Math.ceil((now + forMs) / BUCKET_MS) * BUCKET_MS;
}

/** Sum of the amounts that end at one time. */
interface Bucket {
  end: number;
  amount: number;
}

/** Amounts that count until they end: requests and tokens in the window, or slots with their leases. */
export class Window {
  /** By their ends, none of them empty. */
  readonly #buckets: Bucket[] = [];
  #sum = 0;

  /** Sum of the current window. */
  sum(now: number): number {
    this.#forget(now);
    return this.#sum;
  }

  /** Returns the exact wait until there is room for a cost within a limit, in milliseconds: 0 none, `Infinity` never. */
  waitFor(cost: number, { limit, now }: { limit: number; now: number }): number {
    let excess = this.sum(now) + cost - limit;
    if (excess <= 0) return 0;
    for (const { end, amount } of this.#buckets) {
      excess -= amount;
      if (excess <= 0) return end - now;
    }
    return Infinity;
  }

  /** Returns the milliseconds until nothing counts any more. */
  resetMs(now: number): number {
    this.#forget(now);
    const last = this.#buckets[this.#buckets.length - 1];
    return last === undefined ? 0 : last.end - now;
  }

  /** Counts an amount until its end. @throws {RangeError} where the amount is not a whole number of at least 0 */
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

  /** Gives back an amount that was added for this end, if it still counts. @throws {RangeError} as `add` does */
  remove(amount: number, end: number): void {
    checkAmount(amount);
    const at = this.#find(end);
    const bucket = this.#buckets[at];
    if (bucket?.end !== end) return;
    const given = Math.min(amount, bucket.amount);
    bucket.amount -= given;
    this.#sum -= given;
    if (bucket.amount > 0) return;
    if (at === this.#buckets.length - 1) this.#buckets.pop();
    else this.#buckets.splice(at, 1);
  }

  /**
   * Replaces an estimate that was added by the true amount. Less is given back, if it still counts. More is added to the
   * same bucket, or from now on where that has ended, even above the limit.
   * @throws {RangeError} where the true amount is not a whole number of at least 0
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

  /** Index of the first bucket that does not end before. */
  #find(end: number): number {
    const buckets = this.#buckets;
    let low = 0;
    let high = buckets.length;
    // Most amounts are added to the last bucket.
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

/** `NaN` would spoil the sum. */
function checkAmount(amount: number): void {
  if (!Number.isSafeInteger(amount) || amount < 0) {
    throw new RangeError(`Cannot count ${amount}: it is not a whole number of at least 0`);
  }
}
