/** Encodes the events of one read in the client's protocol. */
import type { Machine, ReplyEvent } from "../protocols/canonical/types.ts";
import type { Frame } from "../protocols/codec.ts";
import type { Step } from "../upstreams/upstream.ts";

/**
 * Writes events as one step. `events` is absent after the end of the upstream's answer.
 * @returns undefined after the last step
 */
export function writeStep(writer: Machine<ReplyEvent, Frame>, events: ReplyEvent[] | undefined): Step | undefined {
  if (events === undefined) {
    const frames = writer.end();
    return frames.length === 0 ? undefined : { frames, events: [] };
  }
  const frames: Frame[] = [];
  let hasContent = false;
  for (const event of events) {
    if (event.type !== "start") hasContent = true;
    for (const frame of writer.push(event)) frames.push(frame);
  }
  // Only the end of an answer can hold usage, so the frames of a step with content need no inspection.
  return { frames, events, contentFrames: hasContent ? frames.length : 0 };
}
