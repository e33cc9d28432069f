/** The streamed answer to a request for images. */
import { type GatewayError, toGatewayError } from "../errors.ts";
import { formatFrame } from "../server/sse.ts";
import { writeJson } from "../json/json.ts";
import { type PatientReader, patientReader } from "../request/patient_reader.ts";
import { type ReaderWatch, watchReader } from "../request/reader_watch.ts";
import { openaiError } from "../protocols/error_bodies.ts";
import { imageObject, joined } from "./json_chunks.ts";
import { numInputImages, writeUsage } from "./write_result.ts";
import type { DeliveredImage, ImageBill, ImageUsageCounter } from "./image_usage.ts";
import type { ImageEvent, ImageFeed, ImageRequest } from "./types.ts";

/** What a streamed answer is made of. */
export interface ImageStream {
  feed: ImageFeed;
  request: ImageRequest;
  tally: ImageUsageCounter;
  /** The time in Unix seconds. */
  seconds: () => number;
  /** Silence after which a keep-alive goes out, in milliseconds. */
  keepAliveMs: number;
  /** How long the client may leave what there is unread, in milliseconds. */
  unreadMs: number;
  /**
   * Enters the charge for all images that are there, once. Asked for before the last thing that the client gets, or
   * would have got. Gives the cost in USD.
   */
  charge: (hasLeft: boolean) => Promise<string>;
  /** Told when the client leaves before the end, or leaves what there is unread for too long, with what it got. */
  left: (got: ImageBill) => void;
  /** Asked when the client leaves: true where the feed is read to its end all the same, and all of it is charged. */
  drains: () => boolean;
}

/** The same while it is written: whether the client is still there is known. */
type Written = Omit<ImageStream, "charge"> & { charge: () => Promise<string> };

const KEEP_ALIVE = ": keep-alive\n";

/**
 * Starts a streamed answer. It resolves when there is something to send: a request that fails before its first image
 * or preview throws and can still become an HTTP error. Where that takes longer than the time between keep-alives, the
 * stream begins with one, and errors are written into it.
 *
 * Nothing is read from the feed unless the client reads.
 * @throws {GatewayError} the error that came in place of a first image
 */
export async function streamImages(stream: ImageStream): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  const reader = patientReader(stream.feed, stream.keepAliveMs);
  let gone = false;
  const steps = writeSteps({ ...stream, charge: () => stream.charge(gone) }, reader);
  /** The bill of what the client has got, and of what it will have got with what it is being sent. */
  let got = stream.tally.bill;
  let given = got;
  let opening: IteratorResult<Iterable<string>> | undefined;
  try {
    opening = await steps.next();
  } catch (error) {
    reader.stop();
    throw error;
  }
  let pieces: Iterator<string> = [].values();
  let watch: ReaderWatch | undefined;

  async function leave(): Promise<void> {
    gone = true;
    watch?.stop();
    if (!stream.drains()) stream.left(got);
    // For nobody but the bill.
    else while ((await steps.next()).done !== true);
    reader.stop();
  }

  return new ReadableStream<Uint8Array>({
    start(controller) {
      watch = watchReader(stream.unreadMs, (error) => {
        // Mostly in the midst of an image, where nothing else can be said.
        controller.error(error);
        void leave();
      });
    },
    async pull(controller) {
      watch?.asks();
      while (true) {
        const piece = pieces.next();
        if (piece.done !== true) {
          controller.enqueue(encoder.encode(piece.value));
          watch?.given();
          return;
        }
        got = given;
        const step = opening ?? await steps.next();
        opening = undefined;
        if (gone) return;
        given = stream.tally.bill;
        if (step.done === true) {
          watch?.stop();
          reader.stop();
          controller.close();
          return;
        }
        pieces = joined(step.value)[Symbol.iterator]();
      }
    },
    cancel: leave,
  }, { highWaterMark: 0 });
}

/** The texts of the stream, one per event. Throws where nothing has been said yet. */
async function* writeSteps(
  stream: Written,
  reader: PatientReader<ImageEvent>,
): AsyncGenerator<Iterable<string>, void> {
  const { request, tally } = stream;
  let said = false;
  let complete = false;
  try {
    for (let event = await reader.read(); event !== undefined; event = await reader.read()) {
      const text = event === "silence" ? [KEEP_ALIVE] : await writeEvent(event, stream);
      if (text === undefined) continue;
      said = true;
      yield text;
      complete = tally.count === request.n;
    }
    if (tally.count === 0) throw tally.failure;
    await stream.charge();
  } catch (thrown) {
    if (!said) throw thrown;
    if (complete) return;
    await stream.charge().catch(() => {});
    yield [writeError(toGatewayError(thrown))];
  }
}

/** What the client gets of an event; nothing of an image that fails, as long as others may come. */
async function writeEvent(event: ImageEvent, stream: Written): Promise<Iterable<string> | undefined> {
  const { tally, request, charge } = stream;
  if (event.type === "failed") {
    tally.fail(event.error);
    return undefined;
  }
  if (event.type === "partial") return tally.isMissing(event.index) ? writePartial(event, stream) : undefined;
  const delivered = tally.deliver(event);
  if (delivered === undefined) return undefined;
  return writeCompleted(delivered, tally.count === request.n ? await charge() : undefined, stream);
}

function writePartial(
  { index, step, base64 }: Extract<ImageEvent, { type: "partial" }>,
  stream: Written,
): Iterable<string> {
  return writeImage("partial_image", { base64, after: { partial_image_index: step, index } }, stream);
}

/** The head of the stream cannot tell the actual size: each image tells its own. The last one tells the cost of all. */
function writeCompleted(
  { image: { index, base64 }, size, usage }: DeliveredImage,
  cost: string | undefined,
  stream: Written,
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
  { request, seconds }: Written,
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
  return formatFrame({ event: "error", data: writeJson({ type: "error", error: { ...openaiError(error) } }) });
}
