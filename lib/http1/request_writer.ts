/** Writes a request, while its response may already arrive. */
import type { Http1Connection } from "./pool.ts";
import { type PackedRequest, writeLatin1 } from "./pack_request.ts";

const LAST_CHUNK = new TextEncoder().encode("0\r\n\r\n");

/** The owner of a request that is written. */
export interface RequestSender {
  /** The stream of the body failed. */
  broken(error: unknown): void;
}

/** A request that is being written. */
export class RequestWriter {
  readonly #connection: Http1Connection;
  /** Absent when it was written: an answer may stream for hours, and the body is up to 50 MB. */
  #packed: PackedRequest | undefined;
  readonly #sender: RequestSender;
  /** True when everything was written. */
  whole = false;
  /** True when reading the stream began, so that it cannot be sent again. */
  pulled = false;
  #stopped = false;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  /** Resolves when nothing more is written, complete or not. */
  readonly settled: Promise<void>;

  /** Starts to write. */
  constructor(sender: RequestSender, { connection, packed }: { connection: Http1Connection; packed: PackedRequest }) {
    this.#connection = connection;
    this.#packed = packed;
    this.#sender = sender;
    this.settled = this.#write(packed);
  }

  /** Cancels the stream. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    const cancelled = this.#reader === undefined ? this.#packed?.stream?.cancel() : this.#reader.cancel();
    cancelled?.catch(() => {});
  }

  async #write(packed: PackedRequest): Promise<void> {
    const { first, second, stream, streamBytes } = packed;
    try {
      // Most requests are written completely at once, so this avoids a promise of our own.
      const left = await this.#connection.socket.write(first);
      if (left < first.length) await this.#connection.write(first, left);
      if (second !== undefined) await this.#connection.write(second);
      if (stream !== undefined && !this.#stopped) await this.#writeStream(stream, streamBytes);
      this.whole = true;
      this.#packed = undefined;
      packed.drop();
    } catch {
      // The peer's response counts for more than a failed write.
      if (this.pulled) this.stop();
    }
  }

  async #writeStream(stream: ReadableStream<Uint8Array>, streamBytes: number | undefined): Promise<void> {
    this.#reader = stream.getReader();
    this.pulled = true;
    if (streamBytes === undefined) await this.#writeChunks(this.#reader);
    else await this.#writePlain(this.#reader, streamBytes);
  }

  async #writeChunks(from: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    for (let piece = await this.#pull(from); piece !== undefined; piece = await this.#pull(from)) {
      // An empty chunk would end the body.
      if (piece.length > 0) await this.#connection.write(asChunk(piece));
    }
    await this.#connection.write(LAST_CHUNK);
  }

  /** Bytes beyond the declared length would be read as the start of another request. */
  async #writePlain(from: ReadableStreamDefaultReader<Uint8Array>, bytes: number): Promise<void> {
    let left = bytes;
    for (let piece = await this.#pull(from); piece !== undefined; piece = await this.#pull(from)) {
      left -= piece.length;
      if (left < 0) break;
      await this.#connection.write(piece);
    }
    if (left === 0) return;
    const error = new RangeError("Cannot send a body: it is not as long as it was said to be");
    this.#sender.broken(error);
    throw error;
  }

  async #pull(from: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
    try {
      const { value, done } = await from.read();
      if (this.#stopped) throw new Error("Cannot go on: the rest is not needed");
      return done ? undefined : value;
    } catch (error) {
      if (!this.#stopped) this.#sender.broken(error);
      throw error;
    }
  }
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
