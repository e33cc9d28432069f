/** What a streamed answer shows of its target: how fast it is, and whether it breaks off. */
import type { ReplyEvent } from "../protocols/canonical/types.ts";
import type { Gateway } from "../gateway.ts";
import type { Permit } from "../routing/health.ts";
import { classifyFailure } from "../routing/classify_failure.ts";

/** Shorter answers say nothing about speed. */
const LEAST_TOKENS = 16;

/** A stream and its target. */
export interface MeasuredStream extends Pick<Gateway, "health" | "monotonic"> {
  pass: Permit;
  /** When the attempt began, by `monotonic`. */
  begunAt: number;
  /** Whether the request was given up: the target is not to blame then. */
  isAborted: () => boolean;
}

/** Reports one stream to the health of its target. A failure before the first event is left to the retry. */
export class TargetMeasurement {
  readonly #stream: MeasuredStream;
  #firstAt: number | undefined;

  constructor(stream: MeasuredStream) {
    this.#stream = stream;
  }

  /** The next events of the answer. */
  take(events: readonly ReplyEvent[]): void {
    for (const event of events) {
      if (event.type === "error") this.broken(event.error);
      else if (event.type !== "start" && this.#firstAt === undefined) this.#begin();
      if (event.type === "finish") this.#end(event.usage.completion);
    }
  }

  /** The answer broke off. */
  broken(error: unknown): void {
    const { health, pass, isAborted } = this.#stream;
    if (this.#firstAt !== undefined && !isAborted()) health.report(pass, classifyFailure(error).outcome);
  }

  #begin(): void {
    const { health, monotonic, pass, begunAt } = this.#stream;
    this.#firstAt = monotonic();
    health.recordSpeed(pass.target, { firstMs: Math.round(this.#firstAt - begunAt) });
  }

  #end(tokens = 0): void {
    const { health, monotonic, pass } = this.#stream;
    const ms = this.#firstAt === undefined ? 0 : monotonic() - this.#firstAt;
    if (tokens >= LEAST_TOKENS && ms > 0) health.recordSpeed(pass.target, { tokensPerSecond: tokens * 1_000 / ms });
  }
}
