/** Reading the bytes of a request body: a slow client is told so. */
import { GatewayError } from "../errors.ts";
import type { BodyLimits } from "./body_limits.ts";
import { ByteBuffer } from "./byte_buffer.ts";

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
    throw error instanceof GatewayError ? error : broken(error);
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
  const reader = stream.getReader();
  const watch = watchProgress(options.limits, () => reader.cancel().catch(() => {}));
  const buffer = new ByteBuffer(firstBytes);
  try {
    while (true) {
      const { done, value } = await reader.read();
      // A cancelled reader says "done" like one that has reached the end.
      if (watch.expired()) throw tooSlow();
      if (done) return buffer.bytes();
      options.take(value.byteLength);
      watch.progress(value.byteLength);
      buffer.append(value);
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    if (error instanceof GatewayError) throw error;
    throw broken(error);
  } finally {
    watch.stop();
  }
}

/** The client has gone and will not see this, or the chunks are malformed and it will. */
function broken(cause: unknown): GatewayError {
  return new GatewayError("invalid", "Cannot read the body: the connection broke, or its framing is wrong", { cause });
}

function tooSlow(): GatewayError {
  return new GatewayError("too_slow", "Cannot wait for the body any longer: it comes too slowly", {
    headers: { connection: "close" },
  });
}

/** Whether a body comes fast enough. One timer, set anew only when it fires. */
function watchProgress(limits: BodyLimits, expire: () => void) {
  const start = performance.now();
  let last = start;
  let bytes = 0;
  let expired = false;
  let timer = setTimeout(check, deadline() - start);

  /** The time at which the body is too slow if nothing more comes. */
  function deadline(): number {
    const rateMs = Math.max(limits.graceMs, bytes / limits.minBytesPerSecond * 1000);
    return Math.min(last + limits.gapMs, start + rateMs, start + limits.totalMs);
  }
  function check(): void {
    const waitMs = deadline() - performance.now();
    if (waitMs > 0) {
      timer = setTimeout(check, Math.ceil(waitMs));
      return;
    }
    expired = true;
    expire();
  }
  return {
    progress(size: number): void {
      bytes += size;
      last = performance.now();
    },
    expired: (): boolean => expired,
    stop: (): void => clearTimeout(timer),
  };
}
