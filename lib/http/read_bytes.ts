/** Reading the bytes of a request body: a slow client is told so. */
import { GatewayError } from "../errors.ts";
import type { BodyLimits } from "./body_limits.ts";
import { ByteBuffer } from "./byte_buffer.ts";
import { brokenBody, readPieces, tooSlow } from "./pieces.ts";

/** Size of the first buffer where the client does not say how much is coming. */
const FIRST_BUFFER_BYTES = 16 * 1024;

/** Size of the first buffer where it does: an announcement alone takes no more memory than this. */
const LARGEST_FIRST_BUFFER_BYTES = 1024 * 1024;

/** How to read bytes: within which time, whom to ask before keeping more, and how many the client has announced. */
export interface ReadOptions {
  limits: BodyLimits;
  take: (bytes: number) => void;
  length: number | undefined;
}

/**
 * Reads a request's body, asking before each piece is kept.
 * @throws {GatewayError} `too_slow`, `invalid` for a body that breaks off, and whatever `take` throws
 */
export function readBytes(
  request: Request,
  { limits, take, length }: ReadOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  return length !== undefined && isSmall(length, limits)
    ? readWhole(request, { limits, take, length })
    : readStream(request.body, { limits, take, length });
}

/** A body this small breaks the rule about the rate before any other, so one timer says all. */
function isSmall(length: number, { minBytesPerSecond, graceMs, gapMs, totalMs }: BodyLimits): boolean {
  return length * 1000 <= minBytesPerSecond * graceMs && graceMs <= Math.min(gapMs, totalMs);
}

/** Lets the platform read it whole, which costs half of what a stream does. */
async function readWhole(
  request: Request,
  { limits, take, length }: ReadOptions & { length: number },
): Promise<Uint8Array<ArrayBuffer>> {
  take(length);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const expiry = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(tooSlow()), limits.graceMs);
  });
  try {
    return new Uint8Array(await Promise.race([request.arrayBuffer(), expiry]));
  } catch (error) {
    throw error instanceof GatewayError ? error : brokenBody(error);
  } finally {
    clearTimeout(timer);
  }
}

/** Reads to the end into one buffer. */
async function readStream(
  stream: ReadableStream<Uint8Array> | null,
  options: ReadOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  if (stream === null) return new Uint8Array(0);
  const firstBytes = Math.min(options.length ?? FIRST_BUFFER_BYTES, LARGEST_FIRST_BUFFER_BYTES);
  const buffer = new ByteBuffer(firstBytes);
  const take = (piece: Uint8Array) => {
    options.take(piece.byteLength);
    buffer.append(piece);
  };
  await readPieces(stream, { pace: options.limits, take });
  return buffer.bytes();
}
