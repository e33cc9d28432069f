/** Limits retries by target, so that failures do not multiply the requests to a target that fails. */
import { ByTarget } from "./by_target.ts";
import type { TargetKey } from "./health.ts";

/** Most tokens of a target, and its tokens at the beginning. */
const MOST_TOKENS = 10;
/** Tokens per second, so that rare requests can always be retried. */
const TOKENS_PER_SECOND = 1;
/** Tokens per first attempt: of many requests a fifth may be retried. */
const TOKENS_PER_REQUEST = 0.2;

/** The budget of one target: a bucket of tokens. A retry takes one. */
export class RetryBudget {
  #tokens = MOST_TOKENS;
  #at = -Infinity;

  /** Returns true if there is a token for a retry. @param now milliseconds of a monotonic clock */
  has(now: number): boolean {
    if (this.#at !== -Infinity) this.#add((now - this.#at) / 1_000 * TOKENS_PER_SECOND);
    this.#at = now;
    return this.#tokens >= 1;
  }

  /** Takes a token: only where `has` answers true. */
  take(): void {
    this.#tokens--;
  }

  /** Counts the first attempt of a request. */
  deposit(): void {
    this.#add(TOKENS_PER_REQUEST);
  }

  #add(tokens: number): void {
    this.#tokens = Math.min(MOST_TOKENS, this.#tokens + tokens);
  }
}

/** Budgets by target. */
export interface RetryBudgets {
  of(target: TargetKey): RetryBudget;
}

/** Budgets in memory. */
export function createRetryBudgets(): RetryBudgets {
  return new ByTarget(() => new RetryBudget());
}
