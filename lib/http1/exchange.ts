/** One exchange: from its start, over the connection, to the head of the response. */
import { GatewayError } from "../errors.ts";
import { type ClientState, ResponseReader } from "./response_reader.ts";
import { ConnectionEnded, HttpVersionError, MalformedResponse } from "./errors.ts";
import type { ConnectionPool, Http1Connection } from "./pool.ts";
import type { RequestTimer, RequestTimers } from "./request_timers.ts";
import {
  findHeadEnd,
  type HeaderFilter,
  parseHead,
  readFraming,
  type ResponseFraming,
  type ResponseHead,
} from "./response_head.ts";
import type { PackedRequest } from "./pack_request.ts";
import { type RequestSender, RequestWriter } from "./request_writer.ts";
import type { PhaseLimits } from "./types.ts";

/** One exchange, until its connection is free for another. */
export class Http1Exchange implements RequestSender {
  readonly #signal: AbortSignal;
  #error: unknown;
  failed = false;
  /** Aborts the opening of a connection. */
  opening: AbortController | undefined;
  connection: Http1Connection | undefined;
  sending: RequestWriter | undefined;
  readonly watch: RequestTimer;

  constructor(signal: AbortSignal, { deadlines, limits }: { deadlines: RequestTimers; limits: PhaseLimits }) {
    this.#signal = signal;
    this.watch = deadlines.start(limits, this);
    signal.addEventListener("abort", this);
  }

  /** The caller aborted the request. */
  handleEvent(): void {
    this.fail(this.#signal.reason);
  }

  /** Ends the exchange with an error: everything it waits for fails now. */
  fail(error: unknown): void {
    if (this.failed) return;
    this.failed = true;
    this.#error = error;
    this.opening?.abort(error);
    this.drop();
  }

  broken(error: unknown): void {
    this.fail(bodyError(error));
  }

  /** Closes its connection, if it has one. */
  drop(): void {
    this.connection?.close();
    this.sending?.stop();
    this.end();
  }

  /** Lets go of its connection without closing it. */
  end(): void {
    this.connection = undefined;
    this.sending = undefined;
    this.watch.stop();
    this.#signal.removeEventListener("abort", this);
  }

  /** The error it was ended with, or the network's error as a `GatewayError`. */
  errorFor(cause: unknown, message: string): unknown {
    if (this.failed) return this.#error ?? cause;
    if (cause instanceof GatewayError) return cause;
    const fault = cause instanceof HttpVersionError ? "unreachable" : undefined;
    return new GatewayError("upstream", cause instanceof MalformedResponse ? BROKEN : message, { cause, fault });
  }
}

const BROKEN = "Cannot read the upstream's answer: it is not proper HTTP";

/**
 * A kept connection that ends within this time after the request began, in milliseconds, was closing before: the news of its
 * end takes no longer, while a model that has begun to think does.
 */
const STALE_MS = 1_000;

/** Request and connections of an exchange. */
export interface ExchangeOptions {
  pool: ConnectionPool;
  packed: PackedRequest;
  shared: ClientState;
  /** True: it uses a new connection. */
  fresh?: boolean;
}

/**
 * Sends a request and reads the head of the response. A kept connection that ends before the request was written
 * completely is replaced by a new one, once. It is one function because each promise between it and the socket costs
 * 2,000 instructions.
 * @throws {GatewayError} `upstream`, with the fault `stale` if a kept connection ended just after the request was
 * written; the error that ended the exchange
 */
export async function exchange(
  call: Http1Exchange,
  { pool, packed, shared, fresh = false }: ExchangeOptions,
): Promise<ResponseReader> {
  try {
    for (let idle = fresh ? undefined : pool.take(call.watch.started);; idle = undefined) {
      const connection = idle ?? await open(call, pool);
      // It may have been aborted while the connection was opened.
      if (call.failed) {
        connection.close();
        throw new ConnectionEnded();
      }
      const sending = new RequestWriter(call, { connection, packed });
      call.connection = connection;
      call.sending = sending;
      let head: ResponseHead | undefined;
      let follows: ResponseFraming;
      try {
        const search = new HeadReader(connection, shared.keepsHeader);
        while ((head = search.take()) === undefined) {
          if (!connection.filled(await connection.fill())) throw new ConnectionEnded();
        }
        follows = readFraming(head, "POST");
      } catch (error) {
        connection.close();
        const mayRepeat = idle !== undefined && !call.failed && !connection.received && !sending.pulled;
        if (mayRepeat) await sending.settled;
        if (mayRepeat && !sending.whole && !call.failed) continue;
        call.drop();
        // No time passed before a kept connection was written to.
        const isStale = mayRepeat && !call.failed && performance.now() - call.watch.started < STALE_MS;
        throw isStale ? staleError(error) : error;
      }
      if (call.failed) throw new ConnectionEnded();
      call.watch.head();
      const answer = new ResponseReader({ connection, sending, head, readFraming: follows }, { call, pool, shared });
      refuseCompressed(answer);
      return answer;
    }
  } catch (cause) {
    call.end();
    // The stream has not been read.
    if (packed.stream?.locked === false) packed.stream.cancel().catch(() => {});
    throw call.errorFor(cause, "Cannot reach the model's upstream");
  }
}

function refuseCompressed(answer: ResponseReader): void {
  const encoding = answer.header("content-encoding");
  if (encoding === null || encoding === "identity") return;
  answer.cancel();
  throw new GatewayError(
    "upstream",
    "Cannot read the upstream's answer: it is compressed, which the request does not accept",
  );
}

/** Opens a connection. @throws {GatewayError} `upstream`, with the fault `unreachable`; the error the exchange was ended with */
async function open(call: Http1Exchange, pool: ConnectionPool): Promise<Http1Connection> {
  const opening = new AbortController();
  call.opening = opening;
  call.watch.connecting();
  try {
    return await pool.open(opening.signal);
  } catch (cause) {
    throw new GatewayError("upstream", "Cannot reach the model's upstream", { cause, fault: "unreachable" });
  } finally {
    call.opening = undefined;
    call.watch.connected();
  }
}

function staleError(cause: unknown): GatewayError {
  return new GatewayError("upstream", "Cannot reach the model's upstream", { cause, fault: "stale" });
}

function bodyError(cause: unknown): GatewayError {
  return cause instanceof GatewayError
    ? cause
    : new GatewayError("upstream", "Cannot reach the model's upstream", { cause });
}

/** Length of an HTTP/2 frame header and two frame types (RFC 9113, sections 4.1 and 6). */
const FRAME_BYTES = 9;
const SETTINGS = 4;
const GOAWAY = 7;

/** Most 1xx responses before the final one. */
const INTERIM = 16;

const BEGINNING = [..."HTTP/1."].map((char) => char.charCodeAt(0));

/** Looks for the final head in the received bytes. The caller waits for more, which saves a promise. */
class HeadReader {
  readonly #connection: Http1Connection;
  /** Bytes that were searched already. */
  #seen = 0;
  #interim = 0;
  readonly #keepsHeader: HeaderFilter | undefined;

  constructor(connection: Http1Connection, keepsHeader: HeaderFilter | undefined) {
    this.#connection = connection;
    this.#keepsHeader = keepsHeader;
  }

  /** The final head, once all of it has arrived. @throws {MalformedResponse}, `HttpVersionError` */
  take(): ResponseHead | undefined {
    const connection = this.#connection;
    const keepsHeader = this.#keepsHeader;
    for (let head = takeHead(connection, this.#seen, keepsHeader); head; head = takeHead(connection, 0, keepsHeader)) {
      if (head.status === 101) throw new MalformedResponse("The peer changes to a protocol that was not requested");
      if (head.status >= 200) return head;
      if (++this.#interim > INTERIM) throw new MalformedResponse("There are too many interim answers");
    }
    this.#seen = connection.end - connection.start;
    return undefined;
  }
}

/** The next complete head. A head that is too long never completes: a connection keeps at most `HEAD_BYTES`. */
function takeHead(
  connection: Http1Connection,
  seen: number,
  keepsHeader: HeaderFilter | undefined,
): ResponseHead | undefined {
  const { buffer, start, end } = connection;
  if (seen < BEGINNING.length && !beginsRight(connection)) {
    if (beginsAsHttp2(connection)) throw new HttpVersionError("The peer speaks HTTP/2 alone");
    throw new MalformedResponse("The peer does not speak HTTP/1");
  }
  const after = findHeadEnd(buffer, { start, seen: start + seen, end });
  if (after < 0) return undefined;
  connection.start = after;
  return parseHead(buffer, { start, end: after }, keepsHeader);
}

/** True while the bytes may become a status line. A peer of another protocol may never end its first line. */
function beginsRight({ buffer, start, end }: Http1Connection): boolean {
  const size = Math.min(end - start, BEGINNING.length);
  for (let at = 0; at < size; at++) if (buffer[start + at] !== BEGINNING[at]) return false;
  return true;
}

/** True for a SETTINGS or GOAWAY frame on stream 0, as an HTTP/2 server sends at once. */
function beginsAsHttp2({ buffer, start, end }: Http1Connection): boolean {
  const type = buffer[start + 3];
  return end - start >= FRAME_BYTES && (type === SETTINGS || type === GOAWAY) &&
    buffer.subarray(start + 5, start + FRAME_BYTES).every((byte) => byte === 0);
}
