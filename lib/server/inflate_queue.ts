/** Large compressed bodies are inflated and parsed one at a time: a few kilobytes sent must not take the memory of many. */
import { GatewayError } from "../errors.ts";

/** Bodies that may wait. Each takes up to half a second. */
const MOST_WAITING = 64;

/** When to try again where too many wait, in milliseconds. */
const RETRY_MS = 2_000;

/** Runs one piece of work at a time, in the order in which they came. */
export class InflateQueue {
  #last: Promise<void> = Promise.resolve();
  #length = 0;

  /** @throws {GatewayError} `limited` where too many wait, and whatever `work` throws */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#length > MOST_WAITING) {
      throw new GatewayError("limited", "Cannot inflate another large body now: too many are waiting", {
        retryAfterMs: RETRY_MS,
      });
    }
    const previous = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    this.#length++;
    try {
      await previous;
      return await work();
    } finally {
      this.#length--;
      resolve();
    }
  }
}
