/** Writes the streamed answer to an image request: events, keep-alives, and the charge at the end. */
import { type GatewayError, toGatewayError, unreadError } from "../errors.ts";
import { formatFrame } from "../server/sse.ts";
import { writeJson } from "../json/mod.ts";
import { MAX_LATE_MS, PhaseTimer, type PhaseTimers } from "../phase_timers.ts";
import { openaiError } from "../protocols/error_bodies.ts";
import { imageObject } from "./json_chunks.ts";
import { joined } from "../server/watched_stream.ts";
import { numInputImages, writeUsage } from "./write_result.ts";
import type { DeliveredImage, ImageBill, ImageUsageCounter } from "./image_usage.ts";
import type { ImageEvent, ImageFeed, ImageRequest } from "./types.ts";

/** Inputs of a streamed answer. */
export interface ImageStream {
  feed: ImageFeed;
  request: ImageRequest;
  counter: ImageUsageCounter;
  /** Returns the Unix time in seconds. */
  seconds: () => number;
  /** Silence before a keep-alive, in milliseconds. */
  keepAliveMs: number;
  /** Longest time that the client may take to read data, in milliseconds. */
  unreadMs: number;
  timers: PhaseTimers;
  /** Charges the delivered images once, before the last event is sent. Resolves to the cost in USD. */
  charge: (isDisconnected: boolean) => Promise<string>;
  /** Called if the client disconnects early or reads too slowly, with the bill of what it received. */
  disconnected: (received: ImageBill) => void;
  /** Called when the client disconnects. Returns true if the feed is read to its end and charged completely. */
  drains: () => boolean;
}

/** A streamed answer that is being written. */
type WrittenStream = Omit<ImageStream, "charge"> & { charge: () => Promise<string> };

const KEEP_ALIVE = ": keep-alive\n";

/**
 * Starts a streamed answer. It resolves with the first event, so that an earlier failure can still become an HTTP
 * error. If the first event takes longer than the keep-alive interval, the stream starts with a keep-alive, and errors
 * become events. The feed is read only as fast as the client reads.
 * @throws {GatewayError} the failure that precedes the first image
 */
export async function streamImages(stream: ImageStream): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  const timer = new PhaseTimer(stream.timers);
  const reader = new KeepAliveReader(stream, timer);
  let isDisconnected = false;
  const steps = writeSteps({ ...stream, charge: () => stream.charge(isDisconnected) }, reader);
  /** Bill of the images and previews that the client has received. */
  let receivedBill = stream.counter.billWithPreviews;
  /** The same, including the event that is being sent. */
  let sentBill = receivedBill;
  let opening: IteratorResult<Iterable<string>> | undefined;
  try {
    opening = await steps.next();
  } catch (error) {
    reader.stop();
    throw error;
  }
  let pieces: Iterator<string> = [].values();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const unread = {
    ms: stream.unreadMs,
    expire() {
      // No error event can be written, because this usually happens in the middle of an image.
      controller?.error(unreadError(stream.unreadMs));
      void disconnect();
    },
  };

  async function disconnect(): Promise<void> {
    isDisconnected = true;
    timer.stop();
    if (!stream.drains()) stream.disconnected(receivedBill);
    // The client has disconnected, so the rest is read only for the bill.
    else while ((await steps.next()).done !== true);
    reader.stop();
  }

  return new ReadableStream<Uint8Array>({
    start(own) {
      controller = own;
      timer.begin(unread);
    },
    async pull(controller) {
      timer.stop();
      while (true) {
        const piece = pieces.next();
        if (piece.done !== true) {
          controller.enqueue(encoder.encode(piece.value));
          timer.begin(unread);
          return;
        }
        receivedBill = sentBill;
        const step = opening ?? await steps.next();
        opening = undefined;
        if (isDisconnected) return;
        sentBill = stream.counter.billWithPreviews;
        if (step.done === true) {
          reader.stop();
          controller.close();
          return;
        }
        pieces = joined(step.value)[Symbol.iterator]();
      }
    },
    cancel: disconnect,
  }, { highWaterMark: 0 });
}

/** Reads a feed, and reports when it is silent for the keep-alive interval. */
class KeepAliveReader {
  readonly #stream: Pick<ImageStream, "feed" | "keepAliveMs">;
  readonly #timer: PhaseTimer;
  /** The pending read, which continues after a silence. */
  #reading: Promise<ImageEvent | undefined> | undefined;

  constructor(stream: Pick<ImageStream, "feed" | "keepAliveMs">, timer: PhaseTimer) {
    this.#stream = stream;
    this.#timer = timer;
  }

  /** Returns the next event, or "silence" if there was none for the keep-alive interval; undefined at the end. */
  async read(): Promise<ImageEvent | "silence" | undefined> {
    const { feed, keepAliveMs } = this.#stream;
    this.#reading ??= feed.read();
    const silence = Promise.withResolvers<"silence">();
    this.#timer.begin({ ms: keepAliveMs - MAX_LATE_MS, expire: () => silence.resolve("silence") });
    try {
      const event = await Promise.race([this.#reading, silence.promise]);
      if (event !== "silence") this.#reading = undefined;
      return event;
    } finally {
      this.#timer.stop();
    }
  }

  /** Ends the feed. */
  stop(): void {
    this.#timer.stop();
    this.#stream.feed.cancel();
  }
}

/**
 * Yields the texts of the events, in chunks. An error is thrown if nothing was sent before, otherwise it becomes an
 * event.
 */
async function* writeSteps(stream: WrittenStream, reader: KeepAliveReader): AsyncGenerator<Iterable<string>, void> {
  const { request, counter } = stream;
  let hasSent = false;
  let complete = false;
  try {
    for (let event = await reader.read(); event !== undefined; event = await reader.read()) {
      const text = event === "silence" ? [KEEP_ALIVE] : await writeEvent(event, stream);
      if (text === undefined) continue;
      hasSent = true;
      yield text;
      complete = counter.count === request.n;
    }
    if (counter.count === 0) throw counter.failure;
    await stream.charge();
  } catch (thrown) {
    if (!hasSent) throw thrown;
    if (complete) return;
    await stream.charge().catch(() => {});
    yield [writeError(toGatewayError(thrown))];
  }
}

/** Returns the text of an event for the client; undefined if the client gets none, as for a failed image. */
async function writeEvent(event: ImageEvent, stream: WrittenStream): Promise<Iterable<string> | undefined> {
  const { counter, request, charge } = stream;
  if (event.type === "failed") {
    counter.fail(event.error);
    return undefined;
  }
  if (event.type === "partial") return counter.preview(event) ? writePartial(event, stream) : undefined;
  const delivered = counter.deliver(event);
  if (delivered === undefined) return undefined;
  return writeCompleted(delivered, counter.count === request.n ? await charge() : undefined, stream);
}

function writePartial(
  { index, step, base64 }: Extract<ImageEvent, { type: "partial" }>,
  stream: WrittenStream,
): Iterable<string> {
  return writeImage("partial_image", { base64, after: { partial_image_index: step, index } }, stream);
}

/** Writes the event of a finished image with its actual size, which a header cannot have. The last one has the cost. */
function writeCompleted(
  { image: { index, base64 }, size, usage }: DeliveredImage,
  cost: string | undefined,
  stream: WrittenStream,
): Iterable<string> {
  const after = {
    usage: writeUsage(usage, stream.request),
    ...numInputImages(stream.request),
    index,
    sluice_image_size: size,
    ...(cost !== undefined && { sluice_cost: cost }),
  };
  return writeImage("completed", { base64, after }, stream);
}

function* writeImage(
  name: "partial_image" | "completed",
  { base64, after }: { base64: string; after: Parameters<typeof imageObject>[2] },
  { request, seconds }: WrittenStream,
): Generator<string> {
  const type = `${request.kind === "edit" ? "image_edit" : "image_generation"}.${name}`;
  yield `event: ${type}\ndata: `;
  yield* imageObject({ type }, base64, {
    created_at: seconds(),
    size: request.requestedSize,
    quality: request.quality,
    background: request.background,
    output_format: request.format,
    ...after,
  });
  yield "\n\n";
}

function writeError(error: GatewayError): string {
  return formatFrame({ event: "error", data: writeJson({ type: "error", error: openaiError(error) }) });
}
