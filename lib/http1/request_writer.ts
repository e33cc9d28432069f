/** Writes a request to a connection. Its response may arrive meanwhile. */
import type { Http1Connection } from "./pool.ts";
import { joinPieces, type PackedRequest } from "./pack_request.ts";

const LAST_CHUNK = new TextEncoder().encode("0\r\n\r\n");

/** The owner of a request that is being written. */
export interface RequestSender {
  /** Called if the stream of the body fails. */
  broken(error: unknown): void;
}

/** A request that is being written. */
export class RequestWriter {
  readonly connection: Http1Connection;
  /** Undefined once it is written, to free up to 50 MB of body: the answer may stream for hours. */
  #packed: PackedRequest | undefined;
  readonly #owner: RequestSender;
  /** True once everything is written. */
  isComplete = false;
  /** True once reading the body's stream has begun, so that the request cannot be sent again. */
  hasReadStream = false;
  #stopped = false;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  /** Resolves when writing has ended, completely or not. */
  readonly settled: Promise<void>;

  /** Starts to write. */
  constructor(sender: RequestSender, { connection, packed }: { connection: Http1Connection; packed: PackedRequest }) {
    this.connection = connection;
    this.#packed = packed;
    this.#owner = sender;
    this.settled = this.#write(packed);
  }

  /** Closes the connection, and cancels the stream of the body. */
  close(): void {
    this.connection.close();
    this.stop();
  }

  /** Cancels the stream of the body. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    const cancelled = this.#reader === undefined ? this.#packed?.stream?.cancel() : this.#reader.cancel();
    cancelled?.catch(() => {});
  }

  async #write(packed: PackedRequest): Promise<void> {
    const { first, second, stream, streamBytes } = packed;
    try {
      // Most requests are written by one call, so the first call goes to the socket itself, which saves a promise.
      const written = await this.connection.socket.write(first);
      if (written < first.length) await this.connection.write(first, written);
      if (second !== undefined) await this.connection.write(second);
      if (stream !== undefined && !this.#stopped) await this.#writeStream(stream, streamBytes);
      this.isComplete = true;
      this.#packed = undefined;
    } catch {
      // A failed write is not reported: the peer may have sent a response, and reading fails if it has not.
      if (this.hasReadStream) this.stop();
    }
  }

  async #writeStream(stream: ReadableStream<Uint8Array>, streamBytes: number | undefined): Promise<void> {
    this.#reader = stream.getReader();
    this.hasReadStream = true;
    if (streamBytes === undefined) await this.#writeChunks(this.#reader);
    else await this.#writePlain(this.#reader, streamBytes);
  }

  async #writeChunks(from: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    for (let piece = await this.#pull(from); piece !== undefined; piece = await this.#pull(from)) {
      // An empty chunk would end the body.
      if (piece.length > 0) {
        await this.connection.write(joinPieces([`${piece.length.toString(16)}\r\n`, piece, "\r\n"]));
      }
    }
    await this.connection.write(LAST_CHUNK);
  }

  /** Writes the stream, and checks its length: the peer would read further bytes as the start of another request. */
  async #writePlain(from: ReadableStreamDefaultReader<Uint8Array>, bytes: number): Promise<void> {
    let left = bytes;
    for (let piece = await this.#pull(from); piece !== undefined; piece = await this.#pull(from)) {
      left -= piece.length;
      if (left < 0) break;
      await this.connection.write(piece);
    }
    if (left === 0) return;
    const error = new RangeError("Cannot send the body: its length differs from the announced one");
    this.#owner.broken(error);
    throw error;
  }

  async #pull(from: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
    try {
      const { value, done } = await from.read();
      if (this.#stopped) throw new Error("Cannot send the rest of the body: the answer has ended");
      return done ? undefined : value;
    } catch (error) {
      if (!this.#stopped) this.#owner.broken(error);
      throw error;
    }
  }
}
