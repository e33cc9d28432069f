/** Statistics of one target in bounded memory: outcomes, failures in a row, attempts, speed, and its retry budget. */
import type { Permit } from "./health.ts";

/** Parts of a window. The oldest is dropped as a whole. */
const PARTS = 30;

/** Successes and failures over a sliding window of time. Times are milliseconds of a monotonic clock. */
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

/** Most keys; failures of further ones are not counted. */
const MAX_KEYS = 64;

/** Failures of a target since its last success, by the client key whose request failed. */
export class FailureStreak {
  readonly #byKey = new Map<string, number>();
  /** Failures of all keys. */
  total = 0;

  /** Failures of one key. */
  of(key: string): number {
    return this.#byKey.get(key) ?? 0;
  }

  /** Failures without those of the key that has the most. */
  get withoutWorstKey(): number {
    return this.total - Math.max(0, ...this.#byKey.values());
  }

  /** Counts failures. */
  add(key: string, count = 1): void {
    const known = this.#byKey.get(key);
    if (known === undefined && this.#byKey.size >= MAX_KEYS) return;
    this.#byKey.set(key, (known ?? 0) + count);
    this.total += count;
  }

  /** Adds the failures of another streak. */
  addAll(other: FailureStreak): void {
    for (const [key, count] of other.#byKey) this.add(key, count);
  }
}

/** Number of remembered attempts. */
const KEPT_ATTEMPTS = 20;

/** The last attempts at a target, the oldest first. */
export class RecentAttempts {
  readonly #outcomes: { permit: Permit; isAnswered: boolean }[] = [];

  /** Notes the outcome of an attempt. An answer that breaks off later is no answer. */
  add(permit: Permit, isAnswered: boolean): void {
    for (const known of this.#outcomes) {
      if (known.permit !== permit) continue;
      known.isAnswered = isAnswered;
      return;
    }
    if (this.#outcomes.push({ permit, isAnswered }) > KEPT_ATTEMPTS) this.#outcomes.shift();
  }

  /** Counts the attempts and those that were answered. */
  count(): { recent_attempts: number; recent_answers: number } {
    const answered = this.#outcomes.filter(({ isAnswered }) => isAnswered);
    return { recent_attempts: this.#outcomes.length, recent_answers: answered.length };
  }
}

/** Number of kept measurements, and the time that they count, in milliseconds. */
const KEPT_SAMPLES = 64;
const KEPT_MS = 300_000;

/** Recent measurements and their percentiles. */
export class SpeedSamples {
  readonly #samples: { at: number; value: number }[] = [];
  #next = 0;

  add(value: number, now: number): void {
    if (!Number.isFinite(value) || value < 0) return;
    this.#samples[this.#next] = { at: now, value };
    this.#next = (this.#next + 1) % KEPT_SAMPLES;
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
    return this.#samples.filter(({ at }) => now - at < KEPT_MS).map(({ value }) => value).sort((a, b) => a - b);
  }
}

function rank(count: number, share: number): number {
  return Math.max(0, Math.ceil(count * share) - 1);
}

/** Most tokens of a target, and its tokens at the beginning. */
const MAX_TOKENS = 10;
/** Tokens per second, so that rare requests can always be retried. */
const TOKENS_PER_SECOND = 1;
/** Tokens per first attempt: of many requests a fifth may be retried. */
const TOKENS_PER_REQUEST = 0.2;

/**
 * The retry budget of one target: a bucket of tokens, of which a retry takes one. It keeps failures from multiplying the
 * requests to a target that fails.
 */
export class RetryBudget {
  #tokens = MAX_TOKENS;
  #at = -Infinity;

  /** Returns true if there is a token for a retry. @param now milliseconds of a monotonic clock */
  has(now: number): boolean {
    const tokens = this.#at === -Infinity ? 0 : (now - this.#at) / 1_000 * TOKENS_PER_SECOND;
    this.#tokens = Math.min(MAX_TOKENS, this.#tokens + tokens);
    this.#at = now;
    return this.#tokens >= 1;
  }

  /** Takes a token: only where `has` answers true. */
  take(): void {
    this.#tokens--;
  }

  /** Counts the first attempt of a request. */
  deposit(): void {
    this.#tokens = Math.min(MAX_TOKENS, this.#tokens + TOKENS_PER_REQUEST);
  }
}
