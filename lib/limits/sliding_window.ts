/**
 * The exact sliding window: never more than a limit within any 60 seconds. What is taken counts until no instant of its
 * bucket lies within the last 60 seconds, so that no window ever holds more, and at most 0.9 % less is admitted.
 */

/** How long what was taken counts, in milliseconds. */
export const WINDOW_MS = 60_000;

/** Width of a bucket, in milliseconds. */
export const BUCKET_MS = 500;

/** When what is taken now leaves the window. Milliseconds of a monotonic clock, as all times here. */
export function windowEnd(now: number): number {
  return (Math.floor(now / BUCKET_MS) + 1) * BUCKET_MS + WINDOW_MS;
}

/** When a slot that is taken now is free whatever happens: with the bucket in which its time is over. */
export function leaseEnd(now: number, forMs: number): number {
  return Math.ceil((now + forMs) / BUCKET_MS) * BUCKET_MS;
}

/** What ends at one time. */
interface Bucket {
  end: number;
  amount: number;
}

/** Amounts that count until their ends: takings until they leave the window, or slots until their leases are over. */
export class Window {
  /** Those with an amount, by their ends. */
  readonly #buckets: Bucket[] = [];
  #sum = 0;

  /** What counts now. */
  sum(now: number): number {
    this.#forget(now);
    return this.#sum;
  }

  /** Milliseconds until there is room for a cost within a limit: 0 at once, `Infinity` never. Nothing less is enough. */
  waitFor(cost: number, { limit, now }: { limit: number; now: number }): number {
    let excess = this.sum(now) + cost - limit;
    if (excess <= 0) return 0;
    for (const { end, amount } of this.#buckets) {
      excess -= amount;
      if (excess <= 0) return end - now;
    }
    return Infinity;
  }

  /** Milliseconds until nothing counts any more. */
  resetMs(now: number): number {
    this.#forget(now);
    const last = this.#buckets[this.#buckets.length - 1];
    return last === undefined ? 0 : last.end - now;
  }

  /** Counts an amount until its end. @throws {RangeError} where the amount is no whole number of at least 0 */
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

  /** Gives back what was added for this end; nothing where that is over. @throws {RangeError} as `add` does */
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
   * Puts the true amount in place of what was added. Less is given back, if it still counts. More is a debt: it counts
   * where the rest was taken, or from now on where that is over, and nothing is admitted until it is paid.
   * @throws {RangeError} where the true amount is no whole number of at least 0
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
    // What comes and goes now mostly ends last.
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

/** One number that is none would spoil a sum for ever. */
function checkAmount(amount: number): void {
  if (!Number.isSafeInteger(amount) || amount < 0) throw new RangeError(`Cannot count ${amount}: it is no amount`);
}
