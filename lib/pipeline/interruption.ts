/** The end of the process, as a request that is under way learns of it. */
import type { GatewayError } from "../errors.ts";

/** Whether a request is ended early, and why. What an `AbortSignal` would be, at a tenth of its memory. */
export class Interruption {
  #reason: GatewayError | undefined;
  readonly #told: ((reason: GatewayError) => void)[] = [];

  /** Whether it has come. */
  get aborted(): boolean {
    return this.#reason !== undefined;
  }

  /** Has this called when it comes: now, where it has come. */
  tell(told: (reason: GatewayError) => void): void {
    if (this.#reason === undefined) this.#told.push(told);
    else told(this.#reason);
  }

  /** Ends the request, once. `reason` is what the client is told. */
  come(reason: GatewayError): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    for (const told of this.#told) told(reason);
  }
}
