/** Writes the events of a translated answer as frames of the client's protocol. */
import type { GatewayError } from "../errors.ts";
import type { Machine, ReplyEvent } from "../protocols/canonical/types.ts";
import type { Frame } from "../protocols/codec.ts";
import type { Step } from "../upstreams/upstream.ts";

/** Writes the events of one answer in the client's protocol, up to the first `finish` or `error` event. */
export class EventWriter {
  readonly #writer: Machine<ReplyEvent, Frame>;
  /** True after the last event of the answer. */
  isOver = false;

  constructor(writer: Machine<ReplyEvent, Frame>) {
    this.#writer = writer;
  }

  /**
   * Writes the next events as one step. Without `events`, the answer has ended.
   * @returns undefined after the last step
   */
  write(events: ReplyEvent[] | undefined): Step | undefined {
    if (this.isOver) return undefined;
    const frames: Frame[] = [];
    let hasContent = false;
    this.isOver = events === undefined;
    for (const event of events ?? []) {
      if (event.type === "finish" || event.type === "error") this.isOver = true;
      if (event.type !== "start") hasContent = true;
      for (const frame of this.#writer.push(event)) frames.push(frame);
    }
    if (this.isOver) frames.push(...this.#writer.end());
    // Only the end of an answer can hold usage, so the frames of a step with content need no inspection.
    return { frames, events: events ?? [], contentFrames: hasContent ? frames.length : 0 };
  }

  /** Returns the frames that end the answer with an error. */
  fail(error: GatewayError): Frame[] {
    return [...this.#writer.push({ type: "error", error }), ...this.#writer.end()];
  }
}
