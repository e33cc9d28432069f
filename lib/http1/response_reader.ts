/** A response whose head has arrived, as callers of the client read it. */
import { GatewayError } from "../errors.ts";
import { type BodyReader, createBody } from "./body_reader.ts";
import type { Http1Exchange } from "./exchange.ts";
import type { ConnectionPool, Http1Connection } from "./pool.ts";
import type { RequestTimer } from "./request_timers.ts";
import type {
  HeaderFilter,
  ResponseFraming,
  ResponseHead,
  ResponseHeader,
  ResponseHeaderName,
} from "./response_head.ts";
import { BUFFER_BYTES, type BufferPool } from "./pack_request.ts";
import type { RequestWriter } from "./request_writer.ts";
import type { Http1Response } from "./types.ts";

/** Limits for reading the rest of a released response, in bytes and in milliseconds. */
const REST_BYTES = 64 * 1024;
const REST_MS = 1_000;

/** State that the requests of one client share. */
export interface ClientState {
  scratches: BufferPool;
  /** Stops the reading of each released response. */
  released: Set<() => void>;
  /** True: released responses are not read any more. */
  closed: boolean;
  keepsHeader: HeaderFilter | undefined;
}

/** A response head, and the connection that carries the rest. */
export interface BegunResponse {
  head: ResponseHead;
  readFraming: ResponseFraming;
  connection: Http1Connection;
  sending: RequestWriter;
}

const decoder = new TextDecoder();

/** A response that is read from its connection on demand only. */
export class ResponseReader implements Http1Response {
  readonly status: number;
  readonly others: readonly ResponseHeader[] | undefined;
  readonly #head: ResponseHead;
  readonly #following: ResponseFraming;
  readonly #connection: Http1Connection;
  readonly #sending: RequestWriter;
  readonly #body: BodyReader;
  readonly #call: Http1Exchange;
  readonly #watch: RequestTimer;
  readonly #pool: ConnectionPool;
  readonly #shared: ClientState;
  #isReleased = false;

  constructor(
    { head, readFraming, connection, sending }: BegunResponse,
    { call, pool, shared }: { call: Http1Exchange; pool: ConnectionPool; shared: ClientState },
  ) {
    this.status = head.status;
    this.others = head.others;
    this.#head = head;
    this.#following = readFraming;
    this.#connection = connection;
    this.#sending = sending;
    this.#body = createBody(readFraming.framing);
    this.#call = call;
    this.#watch = call.watch;
    this.#pool = pool;
    this.#shared = shared;
  }

  header(name: ResponseHeaderName): string | null {
    return this.#head.headers[name] ?? null;
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#isReleased) return undefined;
    if (this.#call.failed) throw this.#brokenOff(undefined);
    try {
      for (let waits = false;; waits = true) {
        const piece = this.#body.take(this.#connection);
        if (piece !== undefined) {
          this.#watch.progress();
          return piece;
        }
        if (this.#body.done) return void this.#complete();
        // Framing bytes without data do not count as progress.
        if (!waits) this.#watch.wait();
        if (!this.#connection.filled(await this.#connection.fill())) this.#body.end();
      }
    } catch (cause) {
      throw this.#brokenOff(cause);
    }
  }

  text(limitBytes: number): Promise<string> {
    const { remaining } = this.#body;
    if (remaining === undefined || this.#isReleased || this.#call.failed) return this.#gather(limitBytes);
    if (remaining > limitBytes) return Promise.reject(this.#tooLarge());
    const { start, end } = this.#connection;
    if (remaining > end - start) return remaining <= BUFFER_BYTES ? this.#fill(remaining) : this.#gather(limitBytes);
    const bytes = this.#body.take(this.#connection);
    const text = bytes === undefined ? "" : decoder.decode(bytes);
    this.#complete();
    return Promise.resolve(text);
  }

  release(): void {
    if (this.#isReleased) return;
    if (this.#call.failed) return this.cancel();
    try {
      while (this.#body.take(this.#connection) !== undefined);
    } catch {
      return this.cancel();
    }
    if (this.#body.done) return this.#complete();
    if (!this.#following.keepsAlive || !this.#sending.whole || this.#shared.closed) return this.cancel();
    this.#isReleased = true;
    this.#call.end();
    const stop = () => {
      clearTimeout(timer);
      this.#shared.released.delete(stop);
      if (this.#body.done) this.#giveBack();
      else this.#close();
    };
    const timer = setTimeout(stop, REST_MS);
    this.#shared.released.add(stop);
    void this.#readRest().then(stop);
  }

  cancel(): void {
    if (this.#isReleased) return;
    if (this.#body.done && !this.#call.failed) return this.#complete();
    this.#isReleased = true;
    this.#call.drop();
  }

  /** Reads a body of known length that fits into a pooled buffer. */
  async #fill(length: number): Promise<string> {
    const scratch = this.#shared.scratches.take(length);
    let size = 0;
    const first = this.#body.take(this.#connection);
    if (first !== undefined) {
      scratch.set(first);
      size = first.length;
    }
    try {
      while (size < length) {
        this.#watch.wait();
        const read = await this.#connection.readInto(scratch.subarray(size, length));
        this.#watch.progress();
        if (read === null) {
          this.#body.end();
          break;
        }
        this.#body.skip(read);
        size += read;
      }
    } catch (cause) {
      // The buffer is not given back: the runtime may still be writing into it.
      throw this.#brokenOff(cause);
    }
    this.#complete();
    const text = decoder.decode(scratch.subarray(0, size));
    this.#shared.scratches.give(scratch);
    return text;
  }

  /** Reads piece by piece into a growing buffer. */
  async #gather(limitBytes: number): Promise<string> {
    const scratch = this.#shared.scratches.take(BUFFER_BYTES);
    let bytes = scratch;
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
    const text = decoder.decode(bytes.subarray(0, size));
    this.#shared.scratches.give(scratch);
    return text;
  }

  #tooLarge(): GatewayError {
    this.cancel();
    return new GatewayError("upstream", "Cannot read the upstream's answer: it is too large");
  }

  #brokenOff(cause: unknown): unknown {
    this.#isReleased = true;
    this.#call.drop();
    return this.#call.errorFor(cause, "The upstream's answer broke off");
  }

  /** The response is complete: the connection may carry the next request. */
  #complete(): void {
    this.#isReleased = true;
    this.#call.end();
    this.#giveBack();
  }

  #giveBack(): void {
    const { start, end } = this.#connection;
    // Bytes after the response belong to no request.
    if (!this.#following.keepsAlive || !this.#sending.whole || start !== end) return this.#close();
    this.#pool.put(this.#connection, this.#following.keepAliveMs);
  }

  #close(): void {
    this.#connection.close();
    this.#sending.stop();
  }

  /** Resolves at the end of the body, at the limit, and when the connection breaks. */
  async #readRest(): Promise<void> {
    try {
      for (let bytes = 0; bytes <= REST_BYTES && !this.#body.done;) {
        if (!this.#connection.filled(await this.#connection.fill())) return this.#body.end();
        for (let piece = this.#body.take(this.#connection); piece; piece = this.#body.take(this.#connection)) {
          bytes += piece.length;
        }
      }
    } catch {
      // The response itself was understood before.
    }
  }
}
