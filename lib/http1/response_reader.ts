/** Reads the body of a response whose head has arrived, and returns its connection to the pool. */
import { GatewayError } from "../errors.ts";
import { type BodyReader, createBody } from "./body_reader.ts";
import type { Http1Exchange } from "./exchange.ts";
import type { ConnectionPool, Http1Connection } from "./pool.ts";
import type { RequestTimer } from "./request_timer.ts";
import type {
  HeaderFilter,
  ResponseFraming,
  ResponseHead,
  ResponseHeader,
  ResponseHeaderName,
} from "./response_head.ts";
import type { RequestWriter } from "./request_writer.ts";
import type { Http1Response } from "./types.ts";

/** Longest body of known length that is read into one buffer, and the first buffer of other bodies, in bytes. */
const BUFFER_BYTES = 64 * 1024;
/** Most bytes that are read of a released response, so that its connection can be reused. */
const MAX_RELEASED_BYTES = 64 * 1024;
/** Longest time for which a released response is read, in milliseconds. */
const MAX_RELEASED_MS = 1_000;

/** State that the requests of one client share. */
export interface ClientState {
  /** Functions that stop reading released responses. */
  released: Set<() => void>;
  /** True once the client is closed. Released responses are no longer read then. */
  closed: boolean;
  /** Selects additional response headers; undefined if there are none. */
  keepsHeader: HeaderFilter | undefined;
}

/** A response head, and the connection that carries the rest. */
export interface BegunResponse {
  head: ResponseHead;
  framing: ResponseFraming;
  connection: Http1Connection;
  writer: RequestWriter;
}

const decoder = new TextDecoder();

/** A response that is read from its connection only when the caller reads it. */
export class ResponseReader implements Http1Response {
  readonly status: number;
  readonly others: readonly ResponseHeader[] | undefined;
  readonly #head: ResponseHead;
  readonly #framing: ResponseFraming;
  readonly #connection: Http1Connection;
  readonly #writer: RequestWriter;
  readonly #body: BodyReader;
  readonly #call: Http1Exchange;
  readonly #timer: RequestTimer;
  readonly #pool: ConnectionPool;
  readonly #shared: ClientState;
  #isOver = false;

  constructor(
    { head, framing, connection, writer }: BegunResponse,
    { call, pool, shared }: { call: Http1Exchange; pool: ConnectionPool; shared: ClientState },
  ) {
    this.status = head.status;
    this.others = head.others;
    this.#head = head;
    this.#framing = framing;
    this.#connection = connection;
    this.#writer = writer;
    this.#body = createBody(framing.framing);
    this.#call = call;
    this.#timer = call.timer;
    this.#pool = pool;
    this.#shared = shared;
  }

  header(name: ResponseHeaderName): string | null {
    return this.#head.headers[name] ?? null;
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#isOver) return undefined;
    if (this.#call.failed) throw this.#fail(undefined);
    try {
      for (let waits = false;; waits = true) {
        const piece = this.#body.take(this.#connection);
        if (piece !== undefined) {
          this.#timer.progress();
          return piece;
        }
        if (this.#body.done) return void this.#complete();
        // Chunk framing without data does not count as progress.
        if (!waits) this.#timer.wait();
        if (!this.#connection.filled(await this.#connection.fill())) this.#body.end();
      }
    } catch (cause) {
      throw this.#fail(cause);
    }
  }

  text(limitBytes: number): Promise<string> {
    const { left } = this.#body;
    if (left === undefined || this.#isOver || this.#call.failed) return this.#readPieces(limitBytes);
    if (left > limitBytes) return Promise.reject(this.#tooLarge());
    const { start, end } = this.#connection;
    if (left > end - start) return left <= BUFFER_BYTES ? this.#readKnownLength(left) : this.#readPieces(limitBytes);
    const bytes = this.#body.take(this.#connection);
    const text = bytes === undefined ? "" : decoder.decode(bytes);
    this.#complete();
    return Promise.resolve(text);
  }

  release(): void {
    if (this.#isOver) return;
    if (this.#call.failed) return this.cancel();
    try {
      while (this.#body.take(this.#connection) !== undefined);
    } catch {
      return this.cancel();
    }
    if (this.#body.done) return this.#complete();
    if (!this.#framing.isPersistent || !this.#writer.isComplete || this.#shared.closed) return this.cancel();
    this.#isOver = true;
    this.#call.end();
    const stop = () => {
      clearTimeout(timer);
      this.#shared.released.delete(stop);
      if (this.#body.done) this.#releaseConnection();
      else this.#close();
    };
    const timer = setTimeout(stop, MAX_RELEASED_MS);
    this.#shared.released.add(stop);
    void this.#readRemaining().then(stop);
  }

  cancel(): void {
    if (this.#isOver) return;
    if (this.#body.done && !this.#call.failed) return this.#complete();
    this.#isOver = true;
    this.#call.drop();
  }

  /** Reads a body of known length into one buffer. */
  async #readKnownLength(length: number): Promise<string> {
    const buffer = new Uint8Array(length);
    let size = 0;
    const first = this.#body.take(this.#connection);
    if (first !== undefined) {
      buffer.set(first);
      size = first.length;
    }
    try {
      while (size < length) {
        this.#timer.wait();
        const read = await this.#connection.socket.read(buffer.subarray(size, length));
        this.#timer.progress();
        if (read === null) {
          this.#body.end();
          break;
        }
        this.#body.skip(read);
        size += read;
      }
    } catch (cause) {
      throw this.#fail(cause);
    }
    this.#complete();
    return decoder.decode(buffer.subarray(0, size));
  }

  /** Reads a body of any length piece by piece into a growing buffer. */
  async #readPieces(limitBytes: number): Promise<string> {
    let bytes = new Uint8Array(BUFFER_BYTES);
    let size = 0;
    for (let piece = await this.read(); piece !== undefined; piece = await this.read()) {
      if (size + piece.length > limitBytes) throw this.#tooLarge();
      if (size + piece.length > bytes.length) {
        const larger = new Uint8Array(bytes.length * 2);
        larger.set(bytes.subarray(0, size));
        bytes = larger;
      }
      bytes.set(piece, size);
      size += piece.length;
    }
    return decoder.decode(bytes.subarray(0, size));
  }

  #tooLarge(): GatewayError {
    this.cancel();
    return new GatewayError("upstream", "Cannot read the upstream's answer: it is too large");
  }

  #fail(cause: unknown): unknown {
    this.#isOver = true;
    this.#call.drop();
    return this.#call.errorFor(cause, "The upstream's answer broke off");
  }

  /** Ends a response that was read completely. Its connection may carry the next request. */
  #complete(): void {
    this.#isOver = true;
    this.#call.end();
    this.#releaseConnection();
  }

  #releaseConnection(): void {
    const { start, end } = this.#connection;
    // A connection with unexpected bytes after the response is not reused.
    if (!this.#framing.isPersistent || !this.#writer.isComplete || start !== end) return this.#close();
    this.#pool.put(this.#connection, this.#framing.keepAliveMs);
  }

  #close(): void {
    this.#connection.close();
    this.#writer.stop();
  }

  /** Reads the rest of a released response. Resolves at its end, at the limit, or when the connection ends. */
  async #readRemaining(): Promise<void> {
    try {
      for (let bytes = 0; bytes <= MAX_RELEASED_BYTES && !this.#body.done;) {
        if (!this.#connection.filled(await this.#connection.fill())) return this.#body.end();
        for (let piece = this.#body.take(this.#connection); piece; piece = this.#body.take(this.#connection)) {
          bytes += piece.length;
        }
      }
    } catch {
      // The caller already has everything that it needs of the response.
    }
  }
}
