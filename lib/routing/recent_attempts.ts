/** Remembers the last attempts at a target, however rare they are. */
import type { Permit } from "./health.ts";

/** Attempts that are remembered. */
const KEPT = 20;

/** The last attempts at a target, the oldest first. */
export class RecentAttempts {
  #kept: { permit: Permit; isAnswered: boolean }[] = [];

  /** Notes the outcome of an attempt. An answer that breaks off later is no answer. */
  add(permit: Permit, isAnswered: boolean): void {
    const known = this.#kept.find((attempt) => attempt.permit === permit);
    if (known !== undefined) known.isAnswered = isAnswered;
    else this.#kept = [...this.#kept, { permit, isAnswered }].slice(-KEPT);
  }

  /** Counts the attempts and those that were answered. */
  count(): { recent_attempts: number; recent_answers: number } {
    const answered = this.#kept.filter(({ isAnswered }) => isAnswered);
    return { recent_attempts: this.#kept.length, recent_answers: answered.length };
  }
}
