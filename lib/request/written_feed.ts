/** Events, written in the client's protocol. */
import type { Machine, ReplyEvent } from "../protocols/canonical/types.ts";
import type { Frame } from "../protocols/codec.ts";
import type { EventFeed, FrameFeed, Step } from "../upstreams/upstream.ts";

/** A feed of frames over a feed of events. */
export function writtenFeed(feed: EventFeed, writer: Machine<ReplyEvent, Frame>): FrameFeed {
  let over = false;

  function write(events: ReplyEvent[] = []): Step {
    const frames: Frame[] = [];
    let said = false;
    over = events.length === 0;
    for (const event of events) {
      if (event.type === "finish" || event.type === "error") over = true;
      if (event.type !== "start") said = true;
      for (const frame of writer.push(event)) frames.push(frame);
    }
    if (over) frames.push(...writer.end());
    // Before its end, an answer is written as it is said.
    return { frames, events, spoken: said ? frames.length : 0 };
  }

  return {
    read: () => over ? Promise.resolve(undefined) : feed.read().then(write),
    fail: (error) => [...writer.push({ type: "error", error }), ...writer.end()],
    cancel: () => feed.cancel(),
  };
}
