/** Reads the bytes of a request body, and refuses a client that sends too slowly. */
import { LARGE_BODY_BYTES, yieldToEventLoop } from "../scheduler.ts";
import type { PhaseTimers } from "../phase_timers.ts";
import type { BodyLimits } from "./body_limits.ts";
import { ByteBuffer } from "./byte_buffer.ts";
import { brokenBody, readPieces, tooSlow } from "./pieces.ts";

/** Size of the first buffer where the client does not say how much is coming. */
const FIRST_BUFFER_BYTES = 16 * 1024;

/** Size of the first buffer where it does: an announcement alone takes no more memory than this. */
const LARGEST_FIRST_BUFFER_BYTES = 1024 * 1024;

/** Grants memory for bytes before they are kept. */
export interface Keeper {
  /** @throws where there is no room for so many more */
  take(bytes: number): void;
}

/** Options for reading bytes: time limits, the memory grant, and the length that the client announced. */
export interface ReadOptions {
  limits: BodyLimits;
  keeper: Keeper;
  length: number | undefined;
  timers: PhaseTimers;
}

/**
 * Reads a request's body, asking before each piece is kept.
 * @throws {GatewayError} `too_slow`, `invalid` for a body that breaks off, and whatever `take` throws
 */
export function readBytes(
  request: Request,
  options: ReadOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const { limits, keeper, length } = options;
  if (length === undefined || !isSmall(length, limits)) return readStream(request.body, options);
  keeper.take(length);
  return readWhole(request, options);
}

/** A body this small breaks the rule about the rate before any other, so one timer says all. */
function isSmall(length: number, { minBytesPerSecond, graceMs, gapMs, totalMs }: BodyLimits): boolean {
  return length * 1000 <= minBytesPerSecond * graceMs && graceMs <= Math.min(gapMs, totalMs);
}

/**
 * Lets the platform read it whole: at the cost of a stream, but who is waited for holds 32 KB instead of 180. Of larger bodies
 * it copies so much that 60 KB take 60 µs instead of 27.
 */
function readWhole(request: Request, { limits, timers }: ReadOptions): Promise<Uint8Array<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    const timer = timers.set(limits.graceMs, () => reject(tooSlow()));
    request.bytes().then((bytes) => {
      timers.clear(timer);
      // Older types leave it open whether memory is shared; that of a body never is.
      resolve(bytes as Uint8Array<ArrayBuffer>);
    }, (error) => {
      timers.clear(timer);
      reject(brokenBody(error));
    });
  });
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
    options.keeper.take(piece.byteLength);
    buffer.append(piece);
  };
  await readPieces(stream, { pace: options.limits, take, timers: options.timers });
  if (buffer.bytes().length > LARGE_BODY_BYTES) await yieldToEventLoop();
  return buffer.bytes();
}
