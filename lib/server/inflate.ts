/** Compressed request bodies: which codings are read, and how they are inflated without trusting them. */
import { GatewayError } from "../errors.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import { bodyTooLarge, type HeaderValues } from "./head.ts";

/** A supported coding. Brotli is not supported: a few bytes of it can expand to gigabytes at once. */
export type Coding = "gzip" | "deflate";

const CODINGS: ReadonlyMap<string, Coding> = new Map([["gzip", "gzip"], ["x-gzip", "gzip"], ["deflate", "deflate"]]);

/**
 * Bytes inflated in one step. Deflate makes at most 1,032 bytes of one, so that at most 528 KB are in memory before
 * they are counted.
 */
const PIECE_BYTES = 512;

/** Most bytes that deflate makes of one. */
const MAX_RATIO = 1_032;

/** Bytes of gzip around nothing: its head and its trailer. */
const GZIP_BYTES = 18;

/** Longest time in which nothing else has its turn, in milliseconds. */
const SLICE_MS = 8;

/**
 * The coding of a body; `undefined` for a plain one.
 * @throws {GatewayError} `unsupported_media_type` for any other coding, and for several on top of each other
 */
export function readCoding(headers: HeaderValues): Coding | undefined {
  const header = headers.get("content-encoding");
  if (header === null) return undefined;
  const names = header.split(",").map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity");
  const [name] = names;
  if (name === undefined) return undefined;
  const coding = CODINGS.get(name);
  if (coding !== undefined && names.length === 1) return coding;
  throw new GatewayError(
    "unsupported_media_type",
    "Cannot read a body in this Content-Encoding: send it as gzip, as deflate, or without one",
    { headers: { "accept-encoding": "gzip, deflate" } },
  );
}

/** Limits of a body that is inflated. */
export interface InflateOptions {
  coding: Coding;
  /** Largest size, inflated. */
  limitBytes: number;
  /** Called once with the size of the whole body, before any of it is stored. @throws if there is no room for it */
  reserve: (bytes: number) => void;
}

/**
 * Inflates a body into a buffer of exactly its size. The gzip trailer states the size, so a body over the limit is
 * refused before it is inflated, and a body that is longer than stated is refused at that point. Deflate has no such
 * trailer: a first pass counts the size and keeps nothing.
 * @throws {GatewayError} `too_large`, `invalid` for bytes that are not of this coding, and the errors of `reserve`
 */
export async function inflate(
  bytes: Uint8Array<ArrayBuffer>,
  { coding, limitBytes, reserve }: InflateOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const size = coding === "gzip" ? statedSize(bytes) : await countInflated(bytes, { coding, limitBytes });
  if (size > bytes.byteLength * MAX_RATIO) throw notOfCoding(coding);
  if (size > limitBytes) throw bodyTooLarge(limitBytes);
  reserve(size);
  const inflated = new Uint8Array(size);
  let length = 0;
  try {
    await inflatePieces(bytes, {
      coding,
      take(piece) {
        if (length + piece.byteLength > size) {
          throw new GatewayError("invalid", "Cannot read the body: it is longer than its trailer states");
        }
        inflated.set(piece, length);
        length += piece.byteLength;
      },
    });
  } catch (error) {
    giveBack(inflated);
    throw error;
  }
  return inflated;
}

/** The most that a body can inflate to, as far as that is known before it is inflated. */
export function maxInflated(bytes: Uint8Array<ArrayBuffer>, coding: Coding): number {
  const maxBytes = bytes.byteLength * MAX_RATIO;
  return coding === "gzip" ? Math.min(statedSize(bytes), maxBytes) : maxBytes;
}

/** The size that the last four bytes of gzip state (RFC 1952, ISIZE). */
function statedSize(bytes: Uint8Array<ArrayBuffer>): number {
  if (bytes.byteLength < GZIP_BYTES || bytes[0] !== 0x1f || bytes[1] !== 0x8b) throw notOfCoding("gzip");
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(bytes.byteLength - 4, true);
}

async function countInflated(
  bytes: Uint8Array<ArrayBuffer>,
  { coding, limitBytes }: { coding: Coding; limitBytes: number },
): Promise<number> {
  let size = 0;
  await inflatePieces(bytes, {
    coding,
    take(piece) {
      size += piece.byteLength;
      if (size > limitBytes) throw bodyTooLarge(limitBytes);
    },
  });
  return size;
}

/** Gives away what each piece inflates to before the next one is inflated. Others have their turn in between. */
async function inflatePieces(
  bytes: Uint8Array<ArrayBuffer>,
  { coding, take }: { coding: Coding; take: (piece: Uint8Array) => void },
): Promise<void> {
  const { readable, writable } = new DecompressionStream(coding);
  const reader = readable.getReader();
  const fed = feed(bytes, writable.getWriter());
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      take(read.value);
      giveBack(read.value);
    }
  } catch (cause) {
    throw cause instanceof GatewayError ? cause : notOfCoding(coding, cause);
  } finally {
    await reader.cancel().catch(() => {});
    await fed;
  }
}

/** Frees the memory of bytes at once: the garbage collector lets hundreds of megabytes gather first. */
function giveBack({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Writes a piece when the one before has been taken. The reader gets the error where the bytes are wrong. */
async function feed(bytes: Uint8Array<ArrayBuffer>, writer: WritableStreamDefaultWriter<BufferSource>): Promise<void> {
  try {
    let sliceEnd = performance.now() + SLICE_MS;
    for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) {
      await writer.write(bytes.subarray(at, at + PIECE_BYTES));
      // Promises alone would keep the event loop to themselves, also where long input inflates to nothing.
      if (performance.now() < sliceEnd) continue;
      await yieldToEventLoop();
      sliceEnd = performance.now() + SLICE_MS;
    }
    await writer.close();
  } catch {
    // The stream has failed or was cancelled, and its reader knows.
  }
}

function notOfCoding(coding: Coding, cause?: unknown): GatewayError {
  return new GatewayError("invalid", `Cannot read the body: it is not ${coding}, or not whole`, { cause });
}
