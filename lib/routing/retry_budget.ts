/** How many retries a target gets: what fails must not be asked more often for it. */
import { ByPlace } from "./by_place.ts";
import type { Place } from "./health.ts";

/** Retries under way that are always allowed, and their share of all requests under way. */
const LEAST_RETRIES = 3;
const RETRY_SHARE = 0.2;
/** A failure takes one token, a success gives a part of one; at or below half of them nothing is retried. */
const TOKENS = 10;
const TOKENS_PER_SUCCESS = 0.1;

/** Whether a retry may go to a target now. `full`: not before others have ended. `spent`: it fails too often. */
export type RetryAnswer = "yes" | "full" | "spent";

/**
 * The budget of one target. Retries under way are limited to a share of the requests under way there. So that a target
 * which stands in for another that has just failed is not held to the few requests it had before, each retry that went
 * well makes room for one more, until something fails: where all targets fail, nothing goes well and the share holds.
 */
export class RetryBudget {
  #tokens = TOKENS;
  #active = 0;
  #retries = 0;
  /** Retries that went well since the last failure. */
  #earned = 0;

  retry(): RetryAnswer {
    if (this.#tokens <= TOKENS / 2) return "spent";
    const most = Math.max(LEAST_RETRIES, RETRY_SHARE * this.#active) + this.#earned;
    return this.#retries < most ? "yes" : "full";
  }

  begin(isRetry: boolean): void {
    this.#active++;
    if (isRetry) this.#retries++;
  }

  /** @param went whether it went well; absent: that says nothing about the target */
  end(isRetry: boolean, went?: "well" | "wrong"): void {
    this.#active--;
    if (isRetry) this.#retries--;
    if (went === "well") {
      this.#tokens = Math.min(TOKENS, this.#tokens + TOKENS_PER_SUCCESS);
      if (isRetry) this.#earned++;
    }
    if (went === "wrong") {
      this.#tokens = Math.max(0, this.#tokens - 1);
      this.#earned = 0;
    }
  }
}

/** Budgets by target. */
export interface RetryBudgets {
  of(place: Place): RetryBudget;
}

/** Budgets in memory. */
export function createRetryBudgets(): RetryBudgets {
  return new ByPlace(() => new RetryBudget());
}
