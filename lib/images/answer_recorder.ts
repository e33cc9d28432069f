/** Records the answers of claimed requests in the store, and retries while it cannot be written. */
import { delay } from "../abort.ts";
import type { StartTimer } from "../start_timer.ts";
import type { HeldClaim } from "./idempotency_claim.ts";
import type { ReplayCache, StoredAnswer } from "./replay_cache.ts";

/** Dependencies of a recorder. */
export interface AnswerRecorderParts {
  cache: ReplayCache;
  /** Lifetime of a stored answer, in milliseconds. */
  windowMs: number;
  later: StartTimer;
  /** Called with the cause when only the fact that a request was answered is recorded. */
  report: (cause: unknown) => void;
}

/** Interval between attempts, in milliseconds. */
const RETRY_MS = 1_000;

/** Time for which an answer that cannot be stored is kept in memory, in milliseconds, and most bytes of all of them. */
const UNSTORED_MS = 30_000;
const MAX_UNSTORED_BYTES = 64 * 1024 * 1024;

/** Records answers. A request stays claimed until its answer is recorded, so that it is not done and charged again. */
export class AnswerRecorder {
  readonly #parts: AnswerRecorderParts;
  readonly #closing = new AbortController();
  /** Bytes of the answers that could not be stored yet. */
  #unstoredBytes = 0;
  /** The retries for these answers. */
  readonly #storing = new Set<Promise<void>>();

  constructor(parts: AnswerRecorderParts) {
    this.#parts = parts;
  }

  /** Stores an answer and releases its claim. Resolves after the first attempt; others follow in the background. */
  async store(claim: HeldClaim, answer: StoredAnswer): Promise<void> {
    try {
      await this.#parts.cache.store(claim.claim, answer);
    } catch (cause) {
      const storing = this.#storeLater(claim, answer, cause);
      this.#storing.add(storing);
      return void storing.finally(() => this.#storing.delete(storing));
    }
    await claim.release();
  }

  /**
   * Records that a request was done, and retries until that succeeds. The claim is released then, or runs out if the
   * gateway is closed before.
   */
  async markDone(claim: HeldClaim): Promise<void> {
    const { cache, windowMs } = this.#parts;
    for (let leftMs = windowMs; leftMs > 0 && !this.#closing.signal.aborted; leftMs -= RETRY_MS) {
      try {
        await cache.markDone(claim.claim);
        return await claim.release();
      } catch {
        await this.#pause().catch(() => {});
      }
    }
    claim.stopRenewing();
  }

  /** Ends all retries. Resolves after a last attempt for each answer that is not stored yet. */
  async close(): Promise<void> {
    this.#closing.abort(new DOMException("Closed", "AbortError"));
    await Promise.all(this.#storing);
  }

  /** Retries to store an answer for a while, since a store may be unreachable for seconds. */
  async #storeLater(claim: HeldClaim, answer: StoredAnswer, cause: unknown): Promise<void> {
    const { length } = answer.body;
    this.#unstoredBytes += length;
    try {
      let leftMs = this.#unstoredBytes <= MAX_UNSTORED_BYTES ? UNSTORED_MS : 0;
      for (; leftMs > 0; leftMs -= RETRY_MS) {
        // While the gateway is being closed, the next attempt is made at once and is the last.
        await this.#pause().catch(() => leftMs = 0);
        const isStored = await this.#parts.cache.store(claim.claim, answer).then(() => true, () => false);
        if (isStored) return await claim.release();
      }
    } finally {
      this.#unstoredBytes -= length;
    }
    this.#parts.report(cause);
    // Returned without waiting, so that this call, and with it the answer, does not stay in memory until it succeeds.
    return this.markDone(claim);
  }

  #pause(): Promise<void> {
    return delay(RETRY_MS, this.#closing.signal, this.#parts.later);
  }
}
