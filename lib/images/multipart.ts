/** Reads uploads: parses `multipart/form-data` into a `FormData` and enforces limits while the bytes arrive. */
import { bodyTooLarge, checkEncoding, checkTransfer, declaredLength } from "../server/head.ts";
import { type BodyPace, readPieces } from "../server/read_bytes.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import { readBoundary } from "./boundary.ts";
import { createFormBuilder, type PartLimits } from "./form_builder.ts";
import { MultipartParser } from "./multipart_parser.ts";
import type { AdmissionQueue } from "../admission_queue.ts";

/** Limits on reading an upload. */
export interface MultipartRules extends PartLimits {
  /** Bytes of the whole body. */
  totalBytes: number;
  parts: number;
  /** Minimum speed of the body. */
  pace: BodyPace;
  /** The queue that all uploads share. A waiting body is not read. */
  gate: AdmissionQueue;
  /** The API key that uploads; absent: it shares nothing with others. */
  keyId?: string | undefined;
  /** Called before bytes are stored; may throw. */
  take?: (bytes: number) => void;
}

/** Bytes parsed at a time: well under a millisecond. */
const SLICE_BYTES = 256 * 1024;

/** Longest time without yielding to the event loop, in milliseconds. */
const BUSY_MS = 8;

/**
 * Reads a form. Text fields are strings; a part with a filename is a `File`, even if it is empty, with the declared
 * media type and the last segment of the filename.
 *
 * Buffers at most about 2 MiB beside the result. Stops at the first error, and leaves the rest of the body unread.
 * @throws {GatewayError} `unsupported_media_type`, `too_large`, `too_slow`, `limited`, `invalid`, and errors of `take`
 */
export async function readMultipart(request: Request, rules: MultipartRules): Promise<FormData> {
  checkTransfer(request.headers);
  checkEncoding(request.headers);
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

  /** Parses a slice; returns a promise when it is time to yield. */
  function parse(slice: Uint8Array): Promise<void> | undefined {
    const start = performance.now();
    parser.push(slice);
    busyMs += performance.now() - start;
    if (busyMs <= BUSY_MS) return undefined;
    busyMs = 0;
    return yieldToEventLoop();
  }

  async function parseSlices(piece: Uint8Array): Promise<void> {
    for (let at = 0; at < piece.length; at += SLICE_BYTES) await parse(piece.subarray(at, at + SLICE_BYTES));
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
