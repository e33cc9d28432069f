/** The one stream loop: events are pulled from a feed, written as frames, and handed to the client as it reads. */
import type { Event, Machine } from "../canonical/types.ts";
import { toGatewayError } from "../errors.ts";
import { formatFrame } from "../http/sse.ts";
import type { Frame } from "../protocols/codec.ts";
import type { EventFeed } from "../upstreams/upstream.ts";

/** What a streamed answer is made of. */
export interface Pump {
  feed: EventFeed;
  writer: Machine<Event, Frame>;
  /** Bytes that say "still here" in the client's protocol. */
  heartbeat: string;
  /** Silence after which a heartbeat goes out, in milliseconds. */
  keepAliveMs: number;
}

type Read = { events: Event[] | undefined } | "silence";

/**
 * Starts a streamed answer. It resolves when there is something to send: an answer that fails before its first event
 * throws and can still become an HTTP error; after that, errors are written into the stream. Where the first event takes
 * longer than the time between heartbeats, the stream begins with a heartbeat instead.
 *
 * Nothing is read from the feed unless the client reads, so a slow reader slows the upstream. Each frame is one chunk.
 * @throws {GatewayError} the error that came in place of a first event
 */
export async function pump({ feed, writer, heartbeat, keepAliveMs }: Pump): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  const reader = patientReader(feed, keepAliveMs);
  let first: Read | undefined;
  try {
    first = await reader.read();
  } catch (error) {
    reader.stop();
    throw error;
  }
  const opening = first === "silence" ? undefined : firstError(first.events);
  if (opening !== undefined) {
    reader.stop();
    throw opening;
  }

  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const write = (frames: Frame[]) => {
        for (const frame of frames) controller.enqueue(encoder.encode(formatFrame(frame)));
      };
      // A batch may write no frame at all; the stream asks again only after it was given something.
      for (let wrote = false; !wrote;) {
        const { read, over } = await next();
        if (read === "silence") {
          controller.enqueue(encoder.encode(heartbeat));
          return;
        }
        const frames = (read.events ?? []).flatMap((event) => writer.push(event));
        if (over) frames.push(...writer.end());
        write(frames);
        wrote = frames.length > 0;
        if (over) {
          reader.stop();
          controller.close();
          return;
        }
      }
    },
    cancel() {
      reader.stop();
    },
  }, { highWaterMark: 0 });

  /** The next events; a feed that fails or ends early becomes an error event. */
  async function next(): Promise<{ read: Read; over: boolean }> {
    try {
      const read = first ?? await reader.read();
      first = undefined;
      if (read === "silence") return { read, over: false };
      return { read, over: read.events === undefined || read.events.some(isLast) };
    } catch (thrown) {
      return { read: { events: [{ type: "error", error: toGatewayError(thrown) }] }, over: true };
    }
  }
}

function isLast(event: Event): boolean {
  return event.type === "finish" || event.type === "error";
}

/** The error that comes before anything was said, if one does. */
function firstError(events: Event[] | undefined): Error | undefined {
  const meaningful = events?.find((event) => event.type !== "start");
  return meaningful?.type === "error" ? meaningful.error : undefined;
}

/**
 * Reads a feed and says "silence" when it keeps still for too long, without losing the read under way. One timer serves
 * the whole stream.
 */
function patientReader(feed: EventFeed, silenceMs: number): { read(): Promise<Read>; stop(): void } {
  let pending: Promise<Event[] | undefined> | undefined;
  let wake: (() => void) | undefined;
  let quiet = false;
  const timer = setInterval(() => {
    if (quiet) wake?.();
    quiet = true;
  }, silenceMs / 2);

  return {
    read() {
      quiet = false;
      const reading = pending ??= feed.read();
      return new Promise<Read>((resolve, reject) => {
        wake = () => {
          wake = undefined;
          resolve("silence");
        };
        reading.then((events) => {
          if (pending === reading) pending = undefined;
          wake = undefined;
          resolve({ events });
        }, (error) => {
          pending = undefined;
          reject(error);
        });
      });
    },
    stop() {
      clearInterval(timer);
      feed.cancel();
    },
  };
}
