/** Inflates compressed request bodies, with limits against bodies that expand to far more than their size. */
import { GatewayError } from "../errors.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import { bodyTooLarge, type HeaderValues } from "./head.ts";

/** A supported coding. Brotli is not supported: a few bytes of it can expand to gigabytes at once. */
export type Coding = "gzip" | "deflate";

const CODINGS: ReadonlyMap<string, Coding> = new Map([["gzip", "gzip"], ["x-gzip", "gzip"], ["deflate", "deflate"]]);

/**
 * Compressed bytes that are inflated in one step. One byte expands to at most 1,032, so at most 528 KB are in memory
 * before they are counted.
 */
const PIECE_BYTES = 512;

/** Maximum number of bytes to which deflate can expand one byte. */
const MAX_EXPANSION = 1_032;

/** Bytes of an empty gzip file: its head and its trailer. */
const GZIP_OVERHEAD_BYTES = 18;

/** Longest time before the event loop runs other tasks, in milliseconds. */
const SLICE_MS = 8;

/**
 * Reads the coding of a body from its headers; `undefined` if it is not compressed.
 * @throws {GatewayError} `unsupported_media_type` for an unsupported coding, and for several codings
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
  /** Largest inflated size. */
  limitBytes: number;
  /** Called once with the inflated size, before memory is allocated. May throw to refuse the body. */
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
  if (size > bytes.byteLength * MAX_EXPANSION) throw notOfCoding(coding);
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
    freeMemory(inflated);
    throw error;
  }
  return inflated;
}

/** Returns an upper bound for the inflated size of a body, without inflating it. */
export function maxInflatedBytes(bytes: Uint8Array<ArrayBuffer>, coding: Coding): number {
  const maxBytes = bytes.byteLength * MAX_EXPANSION;
  return coding === "gzip" ? Math.min(statedSize(bytes), maxBytes) : maxBytes;
}

/** Returns the inflated size that the last four bytes of gzip state (RFC 1952, ISIZE). */
function statedSize(bytes: Uint8Array<ArrayBuffer>): number {
  if (bytes.byteLength < GZIP_OVERHEAD_BYTES || bytes[0] !== 0x1f || bytes[1] !== 0x8b) throw notOfCoding("gzip");
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

/**
 * Inflates a body piece by piece. `take` gets each inflated piece, which is freed afterwards. Yields to the event loop.
 */
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
      freeMemory(read.value);
    }
  } catch (cause) {
    throw cause instanceof GatewayError ? cause : notOfCoding(coding, cause);
  } finally {
    await reader.cancel().catch(() => {});
    await fed;
  }
}

/** Frees memory at once: the garbage collector would let hundreds of megabytes accumulate. */
function freeMemory({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Writes the bytes in pieces, each when the previous one was processed. Errors in the bytes are left to the reader. */
async function feed(bytes: Uint8Array<ArrayBuffer>, writer: WritableStreamDefaultWriter<BufferSource>): Promise<void> {
  try {
    let sliceEnd = performance.now() + SLICE_MS;
    for (let offset = 0; offset < bytes.byteLength; offset += PIECE_BYTES) {
      await writer.write(bytes.subarray(offset, offset + PIECE_BYTES));
      // Awaiting the stream does not let the event loop run other tasks, so long bodies yield explicitly.
      if (performance.now() < sliceEnd) continue;
      await yieldToEventLoop();
      sliceEnd = performance.now() + SLICE_MS;
    }
    await writer.close();
  } catch {
    // The stream has failed or was cancelled. Its reader handles that.
  }
}

function notOfCoding(coding: Coding, cause?: unknown): GatewayError {
  return new GatewayError("invalid", `Cannot read the body: it is not ${coding}, or not whole`, { cause });
}
