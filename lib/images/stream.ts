/** The streamed answer to a request for pictures. */
import { type GatewayError, toGatewayError } from "../errors.ts";
import { formatFrame } from "../http/sse.ts";
import { writeJson } from "../json.ts";
import { type PatientReader, patientReader } from "../pipeline/patient_reader.ts";
import { openaiError } from "../protocols/error_bodies.ts";
import { joined, pictureObject } from "./pieces.ts";
import { writeUsage } from "./result.ts";
import type { Delivered, Tally } from "./tally.ts";
import type { ImageEvent, ImageFeed, ImageRequest } from "./types.ts";

/** What a streamed answer is made of. */
export interface ImageStream {
  feed: ImageFeed;
  request: ImageRequest;
  tally: Tally;
  /** The time in Unix seconds. */
  seconds: () => number;
  /** Silence after which a keep-alive goes out, in milliseconds. */
  keepAliveMs: number;
  /** Told of each picture when its event is made. */
  onPicture?: (delivered: Delivered) => void;
  /** Called once when the stream ends by itself; not where the client leaves. */
  onEnd?: () => void;
}

const KEEP_ALIVE = ": keep-alive\n";

/**
 * Starts a streamed answer. It resolves when there is something to send: a request that fails before its first picture
 * or preview throws and can still become an HTTP error. Where that takes longer than the time between keep-alives, the
 * stream begins with one, and errors are written into it.
 *
 * Nothing is read from the feed unless the client reads.
 * @throws {GatewayError} the error that came in place of a first picture
 */
export async function streamImages(stream: ImageStream): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  const reader = patientReader(stream.feed, stream.keepAliveMs);
  const left = new AbortController();
  const steps = writeSteps(stream, { reader, left: left.signal });
  let opening: IteratorResult<Iterable<string>> | undefined;
  try {
    opening = await steps.next();
  } catch (error) {
    reader.stop();
    throw error;
  }
  let pieces: Iterator<string> = [].values();

  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      while (true) {
        const piece = pieces.next();
        if (piece.done !== true) {
          controller.enqueue(encoder.encode(piece.value));
          return;
        }
        const step = opening ?? await steps.next();
        opening = undefined;
        if (step.done === true) {
          reader.stop();
          controller.close();
          return;
        }
        pieces = joined(step.value)[Symbol.iterator]();
      }
    },
    cancel() {
      left.abort();
      reader.stop();
    },
  }, { highWaterMark: 0 });
}

/** The texts of the stream, one per event. Throws where nothing has been said yet. */
async function* writeSteps(
  stream: ImageStream,
  { reader, left }: { reader: PatientReader<ImageEvent>; left: AbortSignal },
): AsyncGenerator<Iterable<string>, void> {
  const { request, tally } = stream;
  let said = false;
  try {
    for (let event = await reader.read(); event !== undefined; event = await reader.read()) {
      const text = event === "silence" ? [KEEP_ALIVE] : writeEvent(event, stream);
      if (text === undefined) continue;
      said = true;
      yield text;
    }
    if (tally.count === 0) throw tally.failure;
  } catch (thrown) {
    if (!said) throw thrown;
    if (tally.count < request.n) yield [writeError(toGatewayError(thrown))];
  }
  if (!left.aborted) stream.onEnd?.();
}

/** What the client gets of an event; nothing of a picture that fails, as long as others may come. */
function writeEvent(event: ImageEvent, stream: ImageStream): Iterable<string> | undefined {
  const { tally, onPicture } = stream;
  if (event.type === "failed") {
    tally.fail(event.error);
    return undefined;
  }
  if (event.type === "partial") return tally.isMissing(event.index) ? writePartial(event, stream) : undefined;
  const delivered = tally.deliver(event);
  if (delivered === undefined) return undefined;
  onPicture?.(delivered);
  return writeCompleted(delivered, stream);
}

function writePartial(
  { index, step, base64 }: Extract<ImageEvent, { type: "partial" }>,
  stream: ImageStream,
): Iterable<string> {
  return writePicture("partial_image", { base64, after: { partial_image_index: step, index } }, stream);
}

function writeCompleted({ picture: { index, base64 }, usage }: Delivered, stream: ImageStream): Iterable<string> {
  return writePicture("completed", { base64, after: { usage: writeUsage(usage), index } }, stream);
}

function* writePicture(
  name: "partial_image" | "completed",
  { base64, after }: { base64: string; after: Parameters<typeof pictureObject>[2] },
  { request, seconds }: ImageStream,
): Generator<string> {
  const type = `${request.kind === "edit" ? "image_edit" : "image_generation"}.${name}`;
  yield `event: ${type}\ndata: `;
  yield* pictureObject({ type }, base64, {
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
