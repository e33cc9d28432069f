/** Reads uploads: parses `multipart/form-data` into a `FormData`, and enforces limits while the bytes arrive. */
import { bodyTooLarge, checkCodings, declaredLength } from "../server/head.ts";
import { type BodyPace, readPieces } from "../server/read_bytes.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import { createFormBuilder, type PartLimits } from "./form_builder.ts";
import { MultipartParser } from "./multipart_parser.ts";
import type { AdmissionQueue } from "../admission_queue.ts";
import { GatewayError } from "../errors.ts";
import { readParameters } from "./header_parameters.ts";

/** Limits on reading an upload. */
export interface MultipartRules extends PartLimits {
  /** Maximum number of bytes of the whole body. */
  totalBytes: number;
  /** Maximum number of parts of the form. */
  parts: number;
  /** Minimum speed of the body. */
  pace: BodyPace;
  /** The queue that all uploads share. A waiting body is not read. */
  gate: AdmissionQueue;
  /** Id of the API key that uploads, for fairness in the queue; absent if there is none. */
  keyId?: string | undefined;
  /** Called before bytes are stored. May throw to refuse them. */
  take?: (bytes: number) => void;
}

/** Bytes that are parsed at a time, which takes well under a millisecond. */
const SLICE_BYTES = 256 * 1024;

/** Longest time without yielding to the event loop, in milliseconds. */
const MAX_BUSY_MS = 8;

/**
 * Reads a form. Text fields become strings. A part with a filename, even an empty one, becomes a `File` with the
 * declared media type and the last segment of the filename.
 *
 * At most about 2 MiB are buffered besides the result. After the first error, the rest of the body is not read.
 * @throws {GatewayError} `unsupported_media_type`, `too_large`, `too_slow`, `limited`, `invalid`, and errors of `take`
 */
export async function readMultipart(request: Request, rules: MultipartRules): Promise<FormData> {
  checkCodings(request.headers);
  const boundary = readBoundary(request.headers);
  if ((declaredLength(request.headers) ?? 0) > rules.totalBytes) throw bodyTooLarge(rules.totalBytes);
  const leave = await rules.gate.enter(request.signal, { keyId: rules.keyId });
  try {
    return await readForm(request.body, boundary, rules);
  } finally {
    leave();
  }
}

async function readForm(
  body: ReadableStream<Uint8Array> | null,
  boundary: string,
  rules: MultipartRules,
): Promise<FormData> {
  const builder = createFormBuilder(rules);
  const parser = new MultipartParser(boundary, { maxParts: rules.parts, sink: builder });
  let total = 0;
  let busyMs = 0;

  /** Parses a slice. @returns a promise if it is time to yield to the event loop */
  function parse(slice: Uint8Array): Promise<void> | undefined {
    const start = performance.now();
    parser.push(slice);
    busyMs += performance.now() - start;
    if (busyMs <= MAX_BUSY_MS) return undefined;
    busyMs = 0;
    return yieldToEventLoop();
  }

  async function parseSlices(piece: Uint8Array): Promise<void> {
    for (let start = 0; start < piece.length; start += SLICE_BYTES) {
      await parse(piece.subarray(start, start + SLICE_BYTES));
    }
  }

  function take(piece: Uint8Array): void | Promise<void> {
    total += piece.length;
    if (total > rules.totalBytes) throw bodyTooLarge(rules.totalBytes);
    rules.take?.(piece.length);
    // Network reads are usually one slice, which needs no promise.
    return piece.length > SLICE_BYTES ? parseSlices(piece) : parse(piece);
  }

  if (body !== null) await readPieces(body, { pace: rules.pace, take });
  parser.end();
  return builder.form;
}

/** RFC 2046, section 5.1.1: 1 to 70 characters, not ending with a space. */
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/;

/** Returns the boundary of a form. @throws {GatewayError} `invalid` for anything but a form with a valid boundary */
function readBoundary(headers: Headers): string {
  const type = headers.get("content-type") ?? "";
  if (!/^multipart\/form-data[ \t]*(?:;|$)/i.test(type)) {
    throw new GatewayError(
      "invalid",
      "Cannot read the body: expected multipart/form-data with the image as a file in the field `image`; " +
        "JSON and image URLs are not supported here",
    );
  }
  const boundary = boundaryOf(type);
  if (boundary === undefined) throw invalid("its Content-Type has no boundary");
  if (!BOUNDARY.test(boundary)) throw invalid("its boundary is not 1 to 70 of the characters that RFC 2046 allows");
  return boundary;
}

function boundaryOf(type: string): string | undefined {
  try {
    return readParameters(type).get("boundary");
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw invalid(`${cause.message} in its Content-Type`, cause);
  }
}

function invalid(why: string, cause?: unknown): GatewayError {
  return new GatewayError("invalid", `Cannot read the form: ${why}`, { cause });
}
