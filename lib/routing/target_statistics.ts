/** Statistics of one target: outcomes, consecutive failures, recent attempts, speed, and the retry budget. */
import type { Permit } from "./health.ts";

/** Number of slots of a window. The window slides by one slot at a time. */
const SLOTS = 30;

/** Counts requests and failures over a sliding window of time. Times are milliseconds of a monotonic clock. */
export class OutcomeWindow {
  readonly #slotMs: number;
  readonly #all = new Float64Array(SLOTS);
  readonly #failed = new Float64Array(SLOTS);
  /** Number of the current slot, counted from time 0. */
  #slot = 0;

  /** @param windowMs length of the window, in milliseconds */
  constructor(windowMs: number) {
    this.#slotMs = windowMs / SLOTS;
  }

  /** Counts a request. @param succeededAt when it was counted as a success before; absent: it was not */
  add(failed: boolean, now: number, succeededAt?: number): void {
    this.#moveTo(now);
    const index = this.#slot % SLOTS;
    this.#all[index] = (this.#all[index] ?? 0) + 1;
    if (failed) this.#failed[index] = (this.#failed[index] ?? 0) + 1;
    // The request counts only once, as a failure.
    const slot = succeededAt === undefined ? -Infinity : Math.floor(succeededAt / this.#slotMs);
    if (slot <= this.#slot - SLOTS) return;
    const former = slot % SLOTS;
    this.#all[former] = Math.max(this.#failed[former] ?? 0, (this.#all[former] ?? 0) - 1);
  }

  /** Returns the requests in the window, and how many of them failed. */
  read(now: number): { samples: number; failures: number } {
    this.#moveTo(now);
    return { samples: sum(this.#all), failures: sum(this.#failed) };
  }

  clear(): void {
    this.#all.fill(0);
    this.#failed.fill(0);
  }

  #moveTo(now: number): void {
    const slot = Math.floor(now / this.#slotMs);
    const passed = Math.min(SLOTS, slot - this.#slot);
    for (let step = 1; step <= passed; step++) {
      const index = (slot - passed + step) % SLOTS;
      this.#all[index] = 0;
      this.#failed[index] = 0;
    }
    if (slot > this.#slot) this.#slot = slot;
  }
}

function sum(counts: Float64Array): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** Maximum number of keys in a streak. Failures of further keys are not counted. */
const MAX_KEYS = 64;

/** Failures of a target since its last success, by the client key whose request failed. */
export class FailureStreak {
  readonly #byKey = new Map<string, number>();
  /** Failures of all keys. */
  total = 0;

  of(key: string): number {
    return this.#byKey.get(key) ?? 0;
  }

  /** Failures of all keys except the one with the most failures. */
  get withoutWorstKey(): number {
    return this.total - Math.max(0, ...this.#byKey.values());
  }

  add(key: string, count = 1): void {
    const known = this.#byKey.get(key);
    if (known === undefined && this.#byKey.size >= MAX_KEYS) return;
    this.#byKey.set(key, (known ?? 0) + count);
    this.total += count;
  }

  addAll(other: FailureStreak): void {
    for (const [key, count] of other.#byKey) this.add(key, count);
  }
}

/** Maximum number of attempts that are stored. */
const MAX_ATTEMPTS = 20;

/** The last attempts at a target, the oldest first. */
export class RecentAttempts {
  readonly #kept: { permit: Permit; isAnswered: boolean }[] = [];

  /** Records the outcome of an attempt. If the attempt was recorded before, its outcome is replaced. */
  add(permit: Permit, isAnswered: boolean): void {
    for (const known of this.#kept) {
      if (known.permit !== permit) continue;
      known.isAnswered = isAnswered;
      return;
    }
    if (this.#kept.push({ permit, isAnswered }) > MAX_ATTEMPTS) this.#kept.shift();
  }

  count(): { recent_attempts: number; recent_answers: number } {
    const answered = this.#kept.filter(({ isAnswered }) => isAnswered);
    return { recent_attempts: this.#kept.length, recent_answers: answered.length };
  }
}

/** Maximum number of measurements that are stored. */
const MAX_SAMPLES = 64;
/** Time that a measurement counts, in milliseconds. */
const SAMPLE_MS = 300_000;

/** Recent measurements and their percentiles. */
export class SpeedSamples {
  readonly #kept: { at: number; value: number }[] = [];
  #next = 0;

  /** Adds a measurement, in place of the oldest one if there are too many. */
  add(value: number, now: number): void {
    if (!Number.isFinite(value) || value < 0) return;
    this.#kept[this.#next] = { at: now, value };
    this.#next = (this.#next + 1) % MAX_SAMPLES;
  }

  /** Returns the lowest value that this share (0 to 1) of the measurements does not exceed; undefined without any. */
  percentile(share: number, now: number): number | undefined {
    const values = this.#sorted(now);
    return values[rank(values.length, share)];
  }

  /** Returns the highest value that this share (0 to 1) of the measurements reaches; undefined without any. */
  reached(share: number, now: number): number | undefined {
    const values = this.#sorted(now).reverse();
    return values[rank(values.length, share)];
  }

  #sorted(now: number): number[] {
    return this.#kept.filter(({ at }) => now - at < SAMPLE_MS).map(({ value }) => value).sort((a, b) => a - b);
  }
}

function rank(count: number, share: number): number {
  return Math.max(0, Math.ceil(count * share) - 1);
}

/** Maximum number of tokens of a bucket, and its tokens at the start. */
const MAX_TOKENS = 10;
/** Tokens that are added per second, so that rare requests can always be retried. */
const TOKENS_PER_SECOND = 1;
/** Tokens that are added per first attempt: of many requests a fifth can be retried. */
const TOKENS_PER_REQUEST = 0.2;

/**
 * The retry budget of one target: a token bucket from which each retry takes one token. It prevents retries from
 * multiplying the requests to a failing target.
 */
export class RetryBudget {
  #tokens = MAX_TOKENS;
  #refilledAt = -Infinity;

  /** Returns true if there is a token for a retry. @param now milliseconds of a monotonic clock */
  has(now: number): boolean {
    const added = this.#refilledAt === -Infinity ? 0 : (now - this.#refilledAt) / 1_000 * TOKENS_PER_SECOND;
    this.#tokens = Math.min(MAX_TOKENS, this.#tokens + added);
    this.#refilledAt = now;
    return this.#tokens >= 1;
  }

  /** Takes a token. May be called only if `has` returns true. */
  take(): void {
    this.#tokens--;
  }

  /** Adds the tokens for the first attempt of a request. */
  deposit(): void {
    this.#tokens = Math.min(MAX_TOKENS, this.#tokens + TOKENS_PER_REQUEST);
  }
}
