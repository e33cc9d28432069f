/** Sends one request over a connection, and reads its response. */
import { GatewayError } from "../errors.ts";
import type { PhaseTimers } from "../phase_timers.ts";
import { type BodyReader, createBody } from "./body_reader.ts";
import { ConnectionEnded, HttpVersionError, MalformedResponse } from "./errors.ts";
import type { PackedRequest } from "./pack_request.ts";
import type { ConnectionPool, Http1Connection } from "./pool.ts";
import { RequestTimer } from "./request_timer.ts";
import { type RequestSender, RequestWriter } from "./request_writer.ts";
import {
  type HeaderFilter,
  readFraming,
  type ResponseFraming,
  type ResponseHead,
  type ResponseHeader,
  type ResponseHeaderName,
  takeHead,
} from "./response_head.ts";
import type { Http1Request, Http1Response } from "./types.ts";

/** State that the requests of one client share. */
export interface ClientState {
  readonly timers: PhaseTimers;
  /** Functions that stop reading released responses. */
  readonly released: Set<() => void>;
  /** True once the client is closed. Released responses are no longer read then. */
  closed: boolean;
  /** Selects additional response headers; undefined if there are none. */
  readonly keepsHeader: HeaderFilter | undefined;
}

const UNREACHED = "Cannot reach the model's upstream";
const BROKEN = "The upstream's answer broke off";
const MALFORMED_MESSAGE = "Cannot read the upstream's answer: it is not valid HTTP";

/**
 * If a reused connection ends within this time after the start of the request, the host was already closing it. In
 * milliseconds. A host's close is noticed sooner than that, and a model that has begun to work fails later.
 */
const STALE_MS = 1_000;

/** Maximum number of interim (1xx) responses before the final one. */
const MAX_INTERIM = 16;

/** Longest body of known length that is read into one buffer, and the first buffer of other bodies, in bytes. */
const BUFFER_BYTES = 64 * 1024;
/** Maximum number of bytes that are read of a released response, so that its connection can be reused. */
const MAX_RELEASED_BYTES = 64 * 1024;
/** Longest time for which a released response is read, in milliseconds. */
const MAX_RELEASED_MS = 1_000;

const decoder = new TextDecoder();

/** The response before its head has arrived. */
const NO_HEAD: ResponseHead = { minor: 1, status: 0, headers: {} };
const NO_FRAMING: ResponseFraming = { framing: 0, isPersistent: false };
const NO_BODY: BodyReader = createBody(0);

/**
 * One request and its response, which is read from its connection only when the caller reads it. The caller's signal or
 * a time limit can end it at any time.
 */
export class Http1Exchange implements Http1Response, RequestSender {
  #head = NO_HEAD;
  #framing = NO_FRAMING;
  #body = NO_BODY;
  readonly #signal: AbortSignal;
  readonly #pool: ConnectionPool;
  readonly #shared: ClientState;
  readonly #timer: RequestTimer;
  /** Aborts the opening of a connection; undefined if none is being opened. */
  #opening: AbortController | undefined;
  /** Undefined while there is no connection, and after the end of the exchange. */
  #writer: RequestWriter | undefined;
  /** True if the signal, a time limit or the body's stream has ended the exchange. */
  #failed = false;
  #error: unknown;

  constructor(
    { signal, limits }: Pick<Http1Request, "signal" | "limits">,
    { pool, shared }: { pool: ConnectionPool; shared: ClientState },
  ) {
    this.#signal = signal;
    this.#pool = pool;
    this.#shared = shared;
    this.#timer = new RequestTimer(shared.timers, { limits, call: this });
    signal.addEventListener("abort", this);
  }

  /**
   * Sends the request and reads the head of the response. If a reused connection ends before the request was written
   * completely, a new one replaces it, once. This is one function because each promise between it and the socket costs
   * 2,000 instructions.
   * @param fresh true if the exchange must use a new connection
   * @throws {GatewayError} `upstream`, with the fault `stale` if a reused connection ended just after the request was
   * written; the error that ended the exchange
   */
  async send(packed: PackedRequest, fresh = false): Promise<Http1Response> {
    try {
      for (let reused = fresh ? undefined : this.#pool.take(this.#timer.started);; reused = undefined) {
        const connection = reused ?? await this.#open();
        // The exchange may have been aborted while the connection was being opened.
        if (this.#failed) {
          connection.close();
          throw new ConnectionEnded();
        }
        const writer = this.#writer = new RequestWriter(this, { connection, packed });
        try {
          let head: ResponseHead | undefined;
          for (let searched = 0, interim = 0; head === undefined || head.status < 200;) {
            head = takeHead(connection, searched, this.#shared.keepsHeader);
            if (head === undefined) {
              searched = connection.end - connection.start;
              if (!connection.filled(await connection.fill())) throw new ConnectionEnded();
              continue;
            }
            searched = 0;
            if (head.status === 101) {
              throw new MalformedResponse("The peer changes to a protocol that was not requested");
            }
            if (head.status < 200 && ++interim > MAX_INTERIM) {
              throw new MalformedResponse("There are too many interim answers");
            }
          }
          this.#begin(head);
        } catch (error) {
          connection.close();
          const mayRepeat = reused !== undefined && !this.#failed && !connection.received && !writer.hasReadStream;
          if (mayRepeat) await writer.settled;
          if (mayRepeat && !writer.isComplete && !this.#failed) continue;
          this.#drop();
          // A reused connection is written to immediately, so the request's start is the time of the write.
          const isStale = mayRepeat && !this.#failed && performance.now() - this.#timer.started < STALE_MS;
          throw isStale ? new GatewayError("upstream", UNREACHED, { cause: error, fault: "stale" }) : error;
        }
        if (this.#failed) throw new ConnectionEnded();
        this.#timer.head();
        return this;
      }
    } catch (cause) {
      this.#end();
      // Cancel the body's stream if its reading has not begun.
      if (packed.stream?.locked === false) packed.stream.cancel().catch(() => {});
      throw this.#errorFor(cause, UNREACHED);
    }
  }

  /** Opens a connection. @throws {GatewayError} `upstream` with the fault `unreachable` */
  async #open(): Promise<Http1Connection> {
    this.#opening = new AbortController();
    this.#timer.connecting();
    try {
      return await this.#pool.open(this.#opening.signal);
    } catch (cause) {
      throw new GatewayError("upstream", UNREACHED, { cause, fault: "unreachable" });
    } finally {
      this.#opening = undefined;
      this.#timer.connected();
    }
  }

  /** Begins the response with its head. @throws {MalformedResponse}; {GatewayError} for a compressed body */
  #begin(head: ResponseHead): void {
    this.#head = head;
    this.#framing = readFraming(head);
    if ((head.headers["content-encoding"] ?? "identity") !== "identity") {
      throw new GatewayError(
        "upstream",
        "Cannot read the upstream's answer: it is compressed, which the request does not accept",
      );
    }
    this.#body = createBody(this.#framing.framing);
  }

  get status(): number {
    return this.#head.status;
  }

  get others(): readonly ResponseHeader[] | undefined {
    return this.#head.others;
  }

  header(name: ResponseHeaderName): string | null {
    return this.#head.headers[name] ?? null;
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#failed) throw this.#error;
    if (this.#writer === undefined) return undefined;
    const { connection } = this.#writer;
    try {
      for (let waits = false;; waits = true) {
        const piece = this.#body.take(connection);
        if (piece !== undefined) {
          this.#timer.progress();
          return piece;
        }
        if (this.#body.done) return void this.#complete();
        // Chunk framing without data does not count as progress.
        if (!waits) this.#timer.wait();
        if (!connection.filled(await connection.fill())) this.#body.end();
      }
    } catch (cause) {
      throw this.#breakOff(cause);
    }
  }

  text(limitBytes: number): Promise<string> {
    const { left } = this.#body;
    if (left === undefined || this.#writer === undefined) return this.#readPieces(limitBytes);
    if (left > limitBytes) return Promise.reject(this.#tooLarge());
    const { connection } = this.#writer;
    if (left > connection.end - connection.start) {
      return left <= BUFFER_BYTES ? this.#readKnownLength(connection, left) : this.#readPieces(limitBytes);
    }
    const bytes = this.#body.take(connection);
    const text = bytes === undefined ? "" : decoder.decode(bytes);
    this.#complete();
    return Promise.resolve(text);
  }

  release(): void {
    const writer = this.#writer;
    if (writer === undefined) return;
    const { connection } = writer;
    try {
      while (this.#body.take(connection) !== undefined);
    } catch {
      return this.#drop();
    }
    if (this.#body.done) return this.#complete();
    const { released, closed } = this.#shared;
    if (!this.#framing.isPersistent || !writer.isComplete || closed) return this.#drop();
    this.#end();
    const stop = () => {
      clearTimeout(timer);
      released.delete(stop);
      if (this.#body.done) this.#releaseConnection(writer);
      else writer.close();
    };
    const timer = setTimeout(stop, MAX_RELEASED_MS);
    released.add(stop);
    void this.#readRemaining(connection).then(stop);
  }

  cancel(): void {
    if (this.#body.done) this.#complete();
    else this.#drop();
  }

  /** Reads a body of known length into one buffer. */
  async #readKnownLength(connection: Http1Connection, length: number): Promise<string> {
    const buffer = new Uint8Array(length);
    let size = 0;
    const first = this.#body.take(connection);
    if (first !== undefined) {
      buffer.set(first);
      size = first.length;
    }
    try {
      while (size < length) {
        this.#timer.wait();
        const read = await connection.socket.read(buffer.subarray(size, length));
        this.#timer.progress();
        if (read === null) {
          this.#body.end();
          break;
        }
        this.#body.skip(read);
        size += read;
      }
    } catch (cause) {
      throw this.#breakOff(cause);
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

  /** Reads the rest of a released response. Resolves at its end, at the limit, or when the connection ends. */
  async #readRemaining(connection: Http1Connection): Promise<void> {
    try {
      for (let bytes = 0; bytes <= MAX_RELEASED_BYTES && !this.#body.done;) {
        if (!connection.filled(await connection.fill())) return this.#body.end();
        for (let piece = this.#body.take(connection); piece; piece = this.#body.take(connection)) bytes += piece.length;
      }
    } catch {
      // The caller already has everything that it needs of the response.
    }
  }

  #tooLarge(): GatewayError {
    this.cancel();
    return new GatewayError("upstream", "Cannot read the upstream's answer: it is too large");
  }

  /** Ends a response that broke off. @returns the error for the caller */
  #breakOff(cause: unknown): unknown {
    this.#drop();
    return this.#errorFor(cause, BROKEN);
  }

  /** Returns the error that ended the exchange, or otherwise the network's error as a `GatewayError`. */
  #errorFor(cause: unknown, message: string): unknown {
    if (this.#failed) return this.#error ?? cause;
    if (cause instanceof GatewayError) return cause;
    const fault = cause instanceof HttpVersionError ? "unreachable" : undefined;
    return new GatewayError("upstream", cause instanceof MalformedResponse ? MALFORMED_MESSAGE : message, {
      cause,
      fault,
    });
  }

  /** Ends a response that was read completely. Its connection may carry the next request. */
  #complete(): void {
    const writer = this.#writer;
    this.#end();
    if (writer !== undefined) this.#releaseConnection(writer);
  }

  #releaseConnection(writer: RequestWriter): void {
    const { connection } = writer;
    // A connection with unexpected bytes after the response is not reused.
    const isReusable = this.#framing.isPersistent && writer.isComplete && connection.start === connection.end;
    if (isReusable) this.#pool.put(connection, this.#framing.keepAliveMs);
    else writer.close();
  }

  /** Handles the event `abort` of the caller's signal. */
  handleEvent(): void {
    this.fail(this.#signal.reason);
  }

  /** Ends the exchange because the stream of the request's body failed. */
  broken(error: unknown): void {
    this.fail(error instanceof GatewayError ? error : new GatewayError("upstream", UNREACHED, { cause: error }));
  }

  /** Ends the exchange with an error. Pending operations fail. */
  fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#error = error;
    this.#opening?.abort(error);
    this.#drop();
  }

  /** Ends the exchange, and closes its connection if it has one. */
  #drop(): void {
    this.#writer?.close();
    this.#end();
  }

  /** Ends the exchange without closing its connection. */
  #end(): void {
    this.#writer = undefined;
    this.#timer.stop();
    this.#signal.removeEventListener("abort", this);
  }
}
