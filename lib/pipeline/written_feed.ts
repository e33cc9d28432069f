/** Events, written in the client's protocol. */
import type { Event, Machine } from "../canonical/types.ts";
import type { Frame } from "../protocols/codec.ts";
import { type EventFeed, type FrameFeed, isSaid } from "../upstreams/upstream.ts";

/** A feed of frames over a feed of events. */
export function writtenFeed(feed: EventFeed, writer: Machine<Event, Frame>): FrameFeed {
  let over = false;
  return {
    async read() {
      if (over) return undefined;
      const events = await feed.read() ?? [];
      over = events.length === 0 || events.some((event) => event.type === "finish" || event.type === "error");
      const frames = events.flatMap((event) => writer.push(event));
      if (over) frames.push(...writer.end());
      // Before its end, an answer is written as it is said.
      return { frames, events, ...(isSaid(events) && { spoken: frames.length }) };
    },
    fail: (error) => [...writer.push({ type: "error", error }), ...writer.end()],
    cancel: () => feed.cancel(),
  };
}
