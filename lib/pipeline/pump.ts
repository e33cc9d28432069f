/** The one stream loop: steps are pulled from a feed and handed to the client as it reads. */
import { toGatewayError } from "../errors.ts";
import { formatFrame } from "../http/sse.ts";
import type { Frame } from "../protocols/codec.ts";
import type { FrameFeed, Step } from "../upstreams/upstream.ts";
import { patientReader } from "./patient_reader.ts";

/** What a streamed answer is made of. */
export interface Pump {
  feed: FrameFeed;
  /** Bytes that say "still here" in the client's protocol. */
  heartbeat: string;
  /** Silence after which a heartbeat goes out, in milliseconds. */
  keepAliveMs: number;
  /** Told of each step when it has been handed to the client. */
  sent?: (step: Step) => void;
  /** Told when the client leaves before the end. */
  left?: () => void;
  /** True: the feed is read to its end when the client leaves. */
  drain?: boolean;
}

/** `silence`: nothing has come for too long. `undefined`: the stream is over. */
type Read = Step | "silence" | undefined;

/**
 * Starts a streamed answer. It resolves when there is something to send: an answer that fails before its first event
 * throws and can still become an HTTP error; after that, errors are written into the stream. Where the first event takes
 * longer than the time between heartbeats, the stream begins with a heartbeat instead.
 *
 * Nothing is read from the feed unless the client reads, so a slow reader slows the upstream. Each frame is one chunk.
 * @throws {GatewayError} the error that came in place of a first event
 */
export async function pump(
  { feed, heartbeat, keepAliveMs, sent, left, drain = false }: Pump,
): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  const reader = patientReader(feed, keepAliveMs);
  const opening = await openingSteps();
  let failed = false;

  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      // A step may bring no frame at all; the stream asks again only after it was given something.
      for (let wrote = false; !wrote;) {
        const read = await next();
        if (read === "silence") {
          controller.enqueue(encoder.encode(heartbeat));
          return;
        }
        if (read === undefined) {
          reader.stop();
          controller.close();
          return;
        }
        wrote = write(read.frames, controller);
        sent?.(read);
      }
    },
    async cancel() {
      left?.();
      if (drain) await readToEnd();
      reader.stop();
    },
  }, { highWaterMark: 0 });

  /** Reads until something was said: an answer that begins with an error has said nothing. */
  async function openingSteps(): Promise<Read[]> {
    const steps: Read[] = [];
    try {
      for (let said = false; !said;) {
        const read = await reader.read();
        steps.push(read);
        if (read === undefined || read === "silence") break;
        for (const event of read.events) {
          if (event.type === "error" && !said) throw event.error;
          said ||= event.type !== "start";
        }
      }
      return steps;
    } catch (error) {
      reader.stop();
      throw error;
    }
  }

  /** The next step. A feed that fails ends the stream in the protocol's own words. */
  async function next(): Promise<Read> {
    if (opening.length > 0) return opening.shift();
    if (failed) return undefined;
    try {
      return await reader.read();
    } catch (thrown) {
      failed = true;
      return { frames: feed.fail(toGatewayError(thrown)), events: [] };
    }
  }

  /** For nobody but the bill. */
  async function readToEnd(): Promise<void> {
    while (await next() !== undefined);
  }

  function write(frames: readonly Frame[], controller: ReadableStreamDefaultController<Uint8Array>): boolean {
    for (const frame of frames) controller.enqueue(encoder.encode(formatFrame(frame)));
    return frames.length > 0;
  }
}
