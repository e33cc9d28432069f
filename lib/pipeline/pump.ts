/** The one stream loop: steps are pulled from a feed and handed to the client as it reads. */
import { type GatewayError, toGatewayError } from "../errors.ts";
import { formatFrame } from "../http/sse.ts";
import type { Frame } from "../protocols/codec.ts";
import type { FrameFeed, Step } from "../upstreams/upstream.ts";
import { patientReader } from "./patient_reader.ts";
import { type ReaderWatch, watchReader } from "./reader_watch.ts";

/** What a streamed answer is made of. */
export interface Pump {
  feed: FrameFeed;
  /** Bytes that say "still here" in the client's protocol. */
  heartbeat: string;
  /** Silence after which a heartbeat goes out, in milliseconds. */
  keepAliveMs: number;
  /** Told of each step when it has been handed to the client. */
  sent?: (step: Step) => void;
  /** Told when the client leaves before the end, or leaves what there is unread for too long. */
  left?: () => void;
  /** How long the client may leave what there is unread, in milliseconds, and what ends the stream then; absent: for ever. */
  unread?: { ms: number; say: (error: GatewayError) => Frame[] };
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
  { feed, heartbeat, keepAliveMs, sent, left, unread, drain = false }: Pump,
): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  const reader = patientReader(feed, keepAliveMs);
  const opening = await openingSteps();
  let failed = false;
  let over = false;
  let watch: ReaderWatch | undefined;

  return new ReadableStream<Uint8Array>({
    start(controller) {
      if (unread === undefined) return;
      watch = watchReader(unread.ms, (error) => {
        void leave();
        write(unread.say(error), controller);
        controller.close();
      });
    },
    async pull(controller) {
      watch?.asks();
      // A step may bring no frame at all; the stream asks again only after it was given something.
      for (let wrote = false; !wrote;) {
        const read = await next();
        if (over) return;
        if (read === undefined) {
          stop();
          controller.close();
          return;
        }
        wrote = write(read === "silence" ? heartbeat : read.frames, controller);
        if (read !== "silence") sent?.(read);
      }
      watch?.given();
    },
    cancel: leave,
  }, { highWaterMark: 0 });

  function stop(): void {
    over = true;
    watch?.stop();
    reader.stop();
  }

  async function leave(): Promise<void> {
    over = true;
    watch?.stop();
    left?.();
    if (drain) await readToEnd();
    reader.stop();
  }

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

  function write(
    frames: readonly Frame[] | string,
    controller: ReadableStreamDefaultController<Uint8Array>,
  ): boolean {
    if (typeof frames === "string") controller.enqueue(encoder.encode(frames));
    else for (const frame of frames) controller.enqueue(encoder.encode(formatFrame(frame)));
    return frames.length > 0;
  }
}
