/** The one stream loop: steps are pulled from a feed and handed to the client as it reads. */
import { type GatewayError, toGatewayError } from "../errors.ts";
import { encodeText } from "../server/encode.ts";
import { formatFrames } from "../server/sse.ts";
import { type BodyObserver, setBodyObservable } from "../observe/observed_body.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import type { Frame } from "../protocols/codec.ts";
import { characterEnd } from "../text.ts";
import type { FrameFeed, Step } from "../upstreams/upstream.ts";
import { patientReader, type Told } from "./patient_reader.ts";
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
  /**
   * Told when the client leaves before the end, or leaves what there is unread for too long.
   * @returns true where the feed is to be read to its end all the same
   */
  left?: () => boolean;
  /** How long the client may leave what there is unread; absent: for ever. */
  unread?: Unread;
}

/** What bounds the time for which a client may leave its stream unread. */
export interface Unread {
  /** Longest time at once, in milliseconds. */
  ms: number;
  /** What ends the stream then. */
  say: (error: GatewayError) => Frame[];
  /** Given the watch over the client. */
  watching?: (watch: ReaderWatch) => void;
}

/** Characters that are encoded in one turn: 8 million of Han took 60 ms. */
const PIECE = 262_144;

/** `silence`: nothing has come for too long. `undefined`: the stream is over. */
type Read = Step | "silence" | undefined;

/**
 * Starts a streamed answer. It resolves when there is something to send: an answer that fails before its first event
 * throws and can still become an HTTP error; after that, errors are written into the stream. Where the first event takes
 * longer than the time between heartbeats, the stream begins with a heartbeat instead.
 *
 * Nothing is read from the feed unless the client reads, so a slow reader slows the upstream. Each step is one chunk, a long
 * one several. The feed's promises are the only ones: from there on steps are passed by calls, as most streams have one
 * event per read.
 * @throws {GatewayError} the error that came in place of a first event
 */
export async function pump(
  { feed, heartbeat, keepAliveMs, sent, left, unread }: Pump,
): Promise<ReadableStream<Uint8Array>> {
  const reader = patientReader(feed, keepAliveMs);
  const opening = await openingSteps();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let failed = false;
  let over = false;
  /** What is left of a long step. */
  let rest = "";
  let watch: ReaderWatch | undefined;
  let listener: BodyObserver | undefined;
  const told: Told<Step> = { take, fail };

  const body = new ReadableStream<Uint8Array>({
    start(own) {
      controller = own;
      if (unread === undefined) return;
      watch = watchReader(unread.ms, (error) => {
        void leave();
        put(rest + formatFrames(unread.say(error)));
        own.close();
      });
      unread.watching?.(watch);
    },
    pull() {
      watch?.asks();
      next();
    },
    cancel: leave,
  }, { highWaterMark: 0 });
  setBodyObservable(body, (own) => listener = own);
  return body;

  function next(): void {
    if (rest !== "") void yieldToEventLoop().then(giveRest);
    else if (opening.length > 0) take(opening.shift());
    else if (failed) take(undefined);
    else reader.ask(told);
  }

  function take(read: Read): void {
    if (over) return;
    try {
      pass(read);
    } catch (error) {
      breakOff(error);
    }
  }

  /** A feed that fails ends the stream in the protocol's own words. */
  function fail(thrown: unknown): void {
    if (over) return;
    failed = true;
    try {
      pass({ frames: feed.fail(toGatewayError(thrown)), events: [] });
    } catch (error) {
      breakOff(error);
    }
  }

  function pass(read: Read): void {
    if (read === undefined) {
      stop();
      controller?.close();
      listener?.over();
      return;
    }
    const text = read === "silence" ? heartbeat : formatFrames(read.frames);
    if (read !== "silence") sent?.(read);
    // A step may bring no frame at all; the stream asks again only after it was given something.
    if (text === "") return next();
    // What is given may be taken, and more be asked for, within the call.
    watch?.given();
    give(text);
  }

  function breakOff(error: unknown): void {
    stop();
    controller?.error(error);
    listener?.over();
  }

  function giveRest(): void {
    if (over) return;
    watch?.given();
    give(rest);
  }

  function give(text: string): void {
    if (text.length <= PIECE) {
      rest = "";
      return put(text);
    }
    const end = characterEnd(text, PIECE);
    rest = text.slice(end);
    put(text.slice(0, end));
  }

  function put(text: string): void {
    const bytes = encodeText(text);
    listener?.gave(bytes.length);
    controller?.enqueue(bytes);
  }

  function stop(): void {
    over = true;
    watch?.stop();
    reader.stop();
  }

  async function leave(): Promise<void> {
    over = true;
    watch?.stop();
    try {
      if (left?.() === true) await readToEnd();
      reader.stop();
    } finally {
      // Not before what the client is still told.
      await undefined;
      listener?.over();
    }
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

  /** For nobody but the bill. */
  async function readToEnd(): Promise<void> {
    if (failed || opening.includes(undefined)) return;
    try {
      while (await reader.read() !== undefined);
    } catch (thrown) {
      failed = true;
      feed.fail(toGatewayError(thrown));
    }
  }
}
