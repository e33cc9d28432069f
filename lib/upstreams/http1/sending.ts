/** A request on its way out, while its answer may already be coming. */
import type { Connection } from "./connection.ts";
import { type RequestHead, writeHead, writeLatin1 } from "./request.ts";
import { SCRATCH_BYTES, type Scratches } from "./scratch.ts";

/** A body: as text, as bytes, or as a stream that is pulled as fast as the peer takes it. */
export type RequestBody = string | Uint8Array | ReadableStream<Uint8Array>;

/** A request that is ready to be written, maybe twice. */
export interface Packed {
  /** What is written first, or all of it. */
  pieces: readonly Uint8Array[];
  /** What follows: as it is where its length was said, else in chunks. */
  stream?: ReadableStream<Uint8Array>;
  streamBytes?: number;
  /** Lets go of the pieces: they are not written again. */
  drop(): void;
}

/** How far a request has come. */
export interface Sending {
  /** Everything has left. */
  readonly whole: boolean;
  /** A stream was begun: it cannot be sent again. */
  readonly pulled: boolean;
  /** Resolves when nothing more is written, whether everything has left or not. */
  readonly settled: Promise<void>;
  /** Ends the pulling of a stream. */
  stop(): void;
}

/** Room for a head before a body in the same buffer, in bytes. */
const HEAD_ROOM = 4 * 1024;

const encoder = new TextEncoder();
const LAST_CHUNK = encoder.encode("0\r\n\r\n");

/** Writes a request into bytes. Small ones are one piece: head and body leave together. @throws {TypeError} as `writeHead` */
export function packRequest(
  head: Omit<RequestHead, "bodyBytes">,
  { body, bodyBytes, scratches }: { body: RequestBody; bodyBytes?: number; scratches: Scratches },
): Packed {
  if (body instanceof ReadableStream) {
    return { pieces: [headBytes(writeHead({ ...head, bodyBytes }))], stream: body, streamBytes: bodyBytes, drop() {} };
  }
  const packed = typeof body === "string" && body.length <= SCRATCH_BYTES - HEAD_ROOM
    ? packSmall(head, { body, scratches })
    : undefined;
  if (packed !== undefined) return packed;
  const bytes = typeof body === "string" ? encoder.encode(body) : body;
  const first = headBytes(writeHead({ ...head, bodyBytes: bytes.length }));
  return { pieces: bytes.length === 0 ? [first] : [first, bytes], drop() {} };
}

/** The body first, then the head before it: its length is known only then. */
function packSmall(
  head: Omit<RequestHead, "bodyBytes">,
  { body, scratches }: { body: string; scratches: Scratches },
): Packed | undefined {
  // No character takes more than three bytes.
  const scratch = scratches.take(Math.min(HEAD_ROOM + body.length * 3, SCRATCH_BYTES));
  const { read, written } = encoder.encodeInto(body, scratch.subarray(HEAD_ROOM));
  const text = read < body.length ? undefined : writeHead({ ...head, bodyBytes: written });
  if (text === undefined || text.length > HEAD_ROOM) {
    scratches.give(scratch);
    return undefined;
  }
  const start = HEAD_ROOM - text.length;
  writeLatin1(text, scratch, start);
  let held = true;
  return {
    pieces: [scratch.subarray(start, HEAD_ROOM + written)],
    drop() {
      if (held) scratches.give(scratch);
      held = false;
    },
  };
}

function headBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  writeLatin1(text, bytes, 0);
  return bytes;
}

/** Begins to write. `onBroken` is called where the body's own stream fails. */
export function startSending(connection: Connection, packed: Packed, onBroken: (error: unknown) => void): Sending {
  let whole = false;
  let pulled = false;
  let stopped = false;
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  async function write(): Promise<void> {
    for (const piece of packed.pieces) await connection.write(piece);
    if (packed.stream !== undefined && !stopped) {
      reader = packed.stream.getReader();
      pulled = true;
      if (packed.streamBytes === undefined) await writeChunks(reader);
      else await writePlain(reader, packed.streamBytes);
    }
    whole = true;
    packed.drop();
  }

  async function writeChunks(from: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    for (let piece = await pull(from); piece !== undefined; piece = await pull(from)) {
      // A chunk of nothing would be the last.
      if (piece.length > 0) await connection.write(asChunk(piece));
    }
    await connection.write(LAST_CHUNK);
  }

  /** What is longer than it was said to be would be the begin of another request. */
  async function writePlain(from: ReadableStreamDefaultReader<Uint8Array>, bytes: number): Promise<void> {
    let left = bytes;
    for (let piece = await pull(from); piece !== undefined; piece = await pull(from)) {
      left -= piece.length;
      if (left < 0) break;
      await connection.write(piece);
    }
    if (left === 0) return;
    const error = new RangeError("Cannot send a body: it is not as long as it was said to be");
    onBroken(error);
    throw error;
  }

  async function pull(from: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
    try {
      const { value, done } = await from.read();
      if (stopped) throw new Error("Cannot go on: nobody wants the rest");
      return done ? undefined : value;
    } catch (error) {
      if (!stopped) onBroken(error);
      throw error;
    }
  }

  function stop(): void {
    stopped = true;
    const cancelled = reader === undefined ? packed.stream?.cancel() : reader.cancel();
    cancelled?.catch(() => {});
  }

  // What the peer says counts for more than that it does not listen any more.
  const settled = write().catch(() => void (pulled && stop()));
  return {
    get whole() {
      return whole;
    },
    get pulled() {
      return pulled;
    },
    settled,
    stop,
  };
}

function asChunk(piece: Uint8Array): Uint8Array {
  const size = `${piece.length.toString(16)}\r\n`;
  const bytes = new Uint8Array(size.length + piece.length + 2);
  const at = writeLatin1(size, bytes, 0);
  bytes.set(piece, at);
  bytes[at + piece.length] = 13;
  bytes[at + piece.length + 1] = 10;
  return bytes;
}
