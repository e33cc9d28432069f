/** Reads the bytes of a request body, and refuses clients that send too slowly. */
import { LARGE_BODY_BYTES, yieldToEventLoop } from "../scheduler.ts";
import { PhaseTimers, TICK_MS, type Ticking } from "../phase_timers.ts";
import type { BodyLimits, BodyRules, RequestBody } from "./body.ts";
import { GatewayError } from "../errors.ts";
import { bodyTooLarge, declaredLength } from "./head.ts";

/** Size of the first buffer if the client does not declare the length of the body. */
const FIRST_BUFFER_BYTES = 16 * 1024;

/** Largest first buffer if the client declares the length. A declared length alone takes no more memory than this. */
const MAX_FIRST_BUFFER_BYTES = 1024 * 1024;

/**
 * Reads a request's body. Memory is reserved before each piece is stored.
 * @param memory reserves memory for further bytes, or throws
 * @throws {GatewayError} `too_large` for the declared length, `too_slow`, `invalid` for a body that breaks off, and the
 * errors of `memory.take`
 */
export async function readBytes(
  request: Request,
  { headers, limits, timers }: Pick<BodyRules, "headers" | "limits" | "timers">,
  memory: Pick<RequestBody, "take">,
): Promise<Uint8Array<ArrayBuffer>> {
  const { minBytesPerSecond, graceMs, gapMs, totalMs, jsonBytes } = limits;
  const length = declaredLength(headers);
  if (length !== undefined && length > jsonBytes) throw bodyTooLarge(jsonBytes);
  // A small body that is too slow breaks the rule about the grace time first, so one timer is enough.
  const isSmall = length !== undefined && length * 1000 <= minBytesPerSecond * graceMs &&
    graceMs <= Math.min(gapMs, totalMs);
  if (!isSmall) return await readStream(request.body, { limits, memory, length, timers });
  memory.take(length);
  // The runtime reads a small body as a whole, so that a waiting client takes 32 KB of memory instead of 180. It copies
  // larger bodies so often that 60 KB take 60 µs instead of 27.
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const timer = timers.set(graceMs, () => reject(tooSlow()));
  request.bytes().then(resolve, reject);
  try {
    // The declared type allows shared memory, but the memory of a body is never shared.
    return await promise as Uint8Array<ArrayBuffer>;
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throwBrokenBody(error);
  } finally {
    timer.stop();
  }
}

/** Reads a stream to its end into one buffer. */
async function readStream(
  stream: ReadableStream<Uint8Array> | null,
  { limits, memory, length, timers }: Pick<BodyRules, "limits" | "timers"> & {
    memory: Pick<RequestBody, "take">;
    /** The length that the client declared. */
    length: number | undefined;
  },
): Promise<Uint8Array<ArrayBuffer>> {
  if (stream === null) return new Uint8Array(0);
  const firstBytes = Math.min(length ?? FIRST_BUFFER_BYTES, MAX_FIRST_BUFFER_BYTES);
  const buffer = new ByteBuffer(firstBytes);
  const take = (piece: Uint8Array) => {
    memory.take(piece.byteLength);
    buffer.append(piece);
  };
  await readPieces(stream, { pace: limits, take, timers, length });
  if (buffer.bytes().length > LARGE_BODY_BYTES) await yieldToEventLoop();
  return buffer.bytes();
}

/** Collects pieces of bytes in one buffer, so that a million tiny pieces take no more memory than their bytes. */
export class ByteBuffer {
  #buffer = new Uint8Array(0);
  #length = 0;
  readonly #firstBytes: number;

  /** @param firstBytes size of the first buffer; a full buffer is replaced by one of twice its size */
  constructor(firstBytes: number) {
    this.#firstBytes = firstBytes;
  }

  /**
   * Appends a piece. If the first piece is at least as large as the first buffer, it becomes the buffer itself, and the
   * caller must not change it. All other pieces are copied. This saves 50,000 instructions and 12 µs for a body of 60
   * KB in one piece.
   */
  append(piece: Uint8Array): void {
    if (this.#length === 0 && piece.byteLength >= this.#firstBytes) {
      // The declared type allows shared memory, but the memory of a body is never shared.
      this.#buffer = piece as Uint8Array<ArrayBuffer>;
      this.#length = piece.byteLength;
      return;
    }
    const needed = this.#length + piece.byteLength;
    if (needed > this.#buffer.byteLength) {
      const grown = new Uint8Array(Math.max(this.#firstBytes, needed, this.#length * 2));
      grown.set(this.bytes());
      this.#buffer = grown;
    }
    this.#buffer.set(piece, this.#length);
    this.#length = needed;
  }

  /** Returns a view of all bytes so far. It is valid until the next piece is appended. */
  bytes(): Uint8Array<ArrayBuffer> {
    return this.#buffer.subarray(0, this.#length);
  }
}

/** Minimum speed of a body. */
export type BodyPace = Pick<BodyLimits, "gapMs" | "graceMs" | "minBytesPerSecond" | "totalMs">;

/** Options for reading a body in pieces. */
export interface PieceOptions {
  pace: BodyPace;
  /** Bytes of the whole body, if the client declared them. */
  length?: number | undefined;
  /**
   * Called with each piece. If it returns a promise, reading pauses until then, and the pause does not count as slow.
   */
  take: (piece: Uint8Array) => void | Promise<void>;
  /** Absent: new timers. */
  timers?: PhaseTimers;
}

/**
 * Reads a body to its end. After a failure the stream is cancelled.
 * @throws {GatewayError} `too_slow`, `invalid` for a body that breaks off, and the errors of `take`
 */
export async function readPieces(
  stream: ReadableStream<Uint8Array>,
  { pace, take, timers = new PhaseTimers(), length = Infinity }: PieceOptions,
): Promise<void> {
  const reader = stream.getReader();
  let left = length;
  const watch = new ProgressWatch(pace, { timers, end: () => reader.cancel().catch(() => {}) });
  try {
    while (true) {
      const { done, value } = await reader.read().catch(throwBrokenBody);
      // A reader that was cancelled for slowness also reports `done`.
      if (watch.isSlow) throw tooSlow();
      if (done) return;
      watch.progress(value.byteLength);
      left -= value.byteLength;
      const taking = take(value);
      if (taking !== undefined) {
        watch.stop();
        await taking;
        watch.resume();
      }
      // Reading on to the end would hold a buffer of 64 KB until the answer has been sent.
      if (left <= 0) return void reader.cancel().catch(() => {});
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    throw error;
  } finally {
    watch.stop();
  }
}

/** Throws the error for a body that breaks off: the client has disconnected, or its chunks are malformed. */
function throwBrokenBody(cause: unknown): never {
  throw new GatewayError(
    "invalid",
    "Cannot read the body: the connection was closed early, or its framing is invalid",
    { cause },
  );
}

/** Returns the error for a body that arrives too slowly. */
function tooSlow(): GatewayError {
  return new GatewayError("too_slow", "Cannot read the body: it arrives too slowly", {
    headers: { connection: "close" },
  });
}

/** Watches that a body arrives fast enough. */
class ProgressWatch implements Ticking {
  at = -1;
  /** True if the body has arrived too slowly. */
  isSlow = false;
  readonly #pace: BodyPace;
  readonly #timers: PhaseTimers;
  readonly #end: () => void;
  #bytes = 0;
  // The times since the last piece and since the start. The first tick may come immediately, so it does not count.
  #gapMs = -TICK_MS;
  #totalMs = -TICK_MS;

  constructor(pace: BodyPace, { timers, end }: { timers: PhaseTimers; end: () => void }) {
    this.#pace = pace;
    this.#timers = timers;
    this.#end = end;
    timers.add(this);
  }

  tick(): boolean {
    const { gapMs, graceMs, minBytesPerSecond, totalMs } = this.#pace;
    this.#gapMs += TICK_MS;
    this.#totalMs += TICK_MS;
    return this.#gapMs >= gapMs ||
      this.#totalMs >= Math.min(totalMs, Math.max(graceMs, this.#bytes / minBytesPerSecond * 1000));
  }

  expire(): void {
    this.isSlow = true;
    this.stop();
    this.#end();
  }

  progress(bytes: number): void {
    this.#bytes += bytes;
    this.#gapMs = -TICK_MS;
  }

  /** Lets time pass that does not count, until `resume`. */
  stop(): void {
    this.#timers.delete(this);
  }

  resume(): void {
    this.#gapMs = -TICK_MS;
    this.#timers.add(this);
  }
}
