/** Sends one request over a connection, and reads the head of its response. */
import { GatewayError } from "../errors.ts";
import { type ClientState, ResponseReader } from "./response_reader.ts";
import { ConnectionEnded, HttpVersionError, MalformedResponse } from "./errors.ts";
import type { ConnectionPool, Http1Connection } from "./pool.ts";
import { RequestTimer } from "./request_timer.ts";
import type { PhaseTimers } from "../phase_timers.ts";
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

/**
 * The state of one exchange, until its connection is free for another. Its caller or a time limit can end it any time.
 */
export class Http1Exchange implements RequestSender {
  readonly #signal: AbortSignal;
  #error: unknown;
  failed = false;
  /** Aborts the opening of a connection; undefined if none is being opened. */
  opening: AbortController | undefined;
  connection: Http1Connection | undefined;
  writer: RequestWriter | undefined;
  readonly timer: RequestTimer;

  constructor(signal: AbortSignal, { timers, limits }: { timers: PhaseTimers; limits: PhaseLimits }) {
    this.#signal = signal;
    this.timer = new RequestTimer(timers, { limits, call: this });
    signal.addEventListener("abort", this);
  }

  /** Handles the event `abort` of the caller's signal. */
  handleEvent(): void {
    this.fail(this.#signal.reason);
  }

  /** Ends the exchange with an error. Pending operations fail. */
  fail(error: unknown): void {
    if (this.failed) return;
    this.failed = true;
    this.#error = error;
    this.opening?.abort(error);
    this.drop();
  }

  /** Ends the exchange because the stream of the request's body failed. */
  broken(error: unknown): void {
    this.fail(error instanceof GatewayError ? error : new GatewayError("upstream", UNREACHED, { cause: error }));
  }

  /** Ends the exchange, and closes its connection if it has one. */
  drop(): void {
    this.connection?.close();
    this.writer?.stop();
    this.end();
  }

  /** Ends the exchange without closing its connection. */
  end(): void {
    this.connection = undefined;
    this.writer = undefined;
    this.timer.stop();
    this.#signal.removeEventListener("abort", this);
  }

  /** Returns the error that ended the exchange, or otherwise the network's error as a `GatewayError`. */
  errorFor(cause: unknown, message: string): unknown {
    if (this.failed) return this.#error ?? cause;
    if (cause instanceof GatewayError) return cause;
    const fault = cause instanceof HttpVersionError ? "unreachable" : undefined;
    return new GatewayError("upstream", cause instanceof MalformedResponse ? MALFORMED_MESSAGE : message, {
      cause,
      fault,
    });
  }
}

const UNREACHED = "Cannot reach the model's upstream";
const MALFORMED_MESSAGE = "Cannot read the upstream's answer: it is not proper HTTP";

/**
 * If a reused connection ends within this time after the start of the request, the host was already closing it. In
 * milliseconds. The news of a closed connection arrives faster, and a model that has begun to work fails later.
 */
const STALE_MS = 1_000;

/** Request and connections of an exchange. */
export interface ExchangeOptions {
  pool: ConnectionPool;
  packed: PackedRequest;
  shared: ClientState;
  /** True if the exchange must use a new connection. */
  fresh?: boolean;
}

/**
 * Sends a request and reads the head of the response. If a reused connection ends before the request was written
 * completely, a new one replaces it, once. This is one function because each promise between it and the socket costs
 * 2,000 instructions.
 * @throws {GatewayError} `upstream`, with the fault `stale` if a reused connection ended just after the request was
 * written; the error that ended the exchange
 */
export async function exchange(
  call: Http1Exchange,
  { pool, packed, shared, fresh = false }: ExchangeOptions,
): Promise<ResponseReader> {
  try {
    for (let reused = fresh ? undefined : pool.take(call.timer.started);; reused = undefined) {
      const connection = reused ?? await open(call, pool);
      // The exchange may have been aborted while the connection was being opened.
      if (call.failed) {
        connection.close();
        throw new ConnectionEnded();
      }
      const writer = new RequestWriter(call, { connection, packed });
      call.connection = connection;
      call.writer = writer;
      let head: ResponseHead | undefined;
      let framing: ResponseFraming;
      try {
        for (let searched = 0, interim = 0; head === undefined || head.status < 200;) {
          head = takeHead(connection, searched, shared.keepsHeader);
          if (head === undefined) {
            searched = connection.end - connection.start;
            if (!connection.filled(await connection.fill())) throw new ConnectionEnded();
            continue;
          }
          searched = 0;
          if (head.status === 101) throw new MalformedResponse("The peer changes to a protocol that was not requested");
          if (head.status < 200 && ++interim > MAX_INTERIM) {
            throw new MalformedResponse("There are too many interim answers");
          }
        }
        framing = readFraming(head);
        const encoding = head.headers["content-encoding"] ?? "identity";
        if (encoding !== "identity") {
          throw new GatewayError(
            "upstream",
            "Cannot read the upstream's answer: it is compressed, which the request does not accept",
          );
        }
      } catch (error) {
        connection.close();
        const mayRepeat = reused !== undefined && !call.failed && !connection.received && !writer.hasReadStream;
        if (mayRepeat) await writer.settled;
        if (mayRepeat && !writer.isComplete && !call.failed) continue;
        call.drop();
        // A reused connection is written to at once, so the request's start is the time of the write.
        const isStale = mayRepeat && !call.failed && performance.now() - call.timer.started < STALE_MS;
        throw isStale ? new GatewayError("upstream", UNREACHED, { cause: error, fault: "stale" }) : error;
      }
      if (call.failed) throw new ConnectionEnded();
      call.timer.head();
      return new ResponseReader({ connection, writer, head, framing }, { call, pool, shared });
    }
  } catch (cause) {
    call.end();
    // Cancel the body's stream if its reading has not begun.
    if (packed.stream?.locked === false) packed.stream.cancel().catch(() => {});
    throw call.errorFor(cause, UNREACHED);
  }
}

/** Opens a connection. @throws {GatewayError} `upstream` with the fault `unreachable` */
async function open(call: Http1Exchange, pool: ConnectionPool): Promise<Http1Connection> {
  const opening = new AbortController();
  call.opening = opening;
  call.timer.connecting();
  try {
    return await pool.open(opening.signal);
  } catch (cause) {
    throw new GatewayError("upstream", UNREACHED, { cause, fault: "unreachable" });
  } finally {
    call.opening = undefined;
    call.timer.connected();
  }
}

/** Length of an HTTP/2 frame header (RFC 9113, section 4.1). */
const FRAME_HEADER_BYTES = 9;
/** Types of HTTP/2 frames (RFC 9113, section 6). */
const SETTINGS = 4;
const GOAWAY = 7;

/** Most interim (1xx) responses before the final one. */
const MAX_INTERIM = 16;

/** The bytes with which every HTTP/1 response begins. */
const PREFIX = [..."HTTP/1."].map((char) => char.charCodeAt(0));

/** Consumes the next head; returns undefined if it is incomplete. A connection buffers at most `HEAD_BYTES` of it. */
function takeHead(
  connection: Http1Connection,
  seen: number,
  keepsHeader: HeaderFilter | undefined,
): ResponseHead | undefined {
  const { buffer, start, end } = connection;
  if (seen < PREFIX.length && !mayBeHttp1(connection)) {
    if (isHttp2(connection)) throw new HttpVersionError("The peer speaks HTTP/2 alone");
    throw new MalformedResponse("The peer does not speak HTTP/1");
  }
  const headEnd = findHeadEnd(buffer, { start, seen: start + seen, end });
  if (headEnd < 0) return undefined;
  connection.start = headEnd;
  return parseHead(buffer, { start, end: headEnd }, keepsHeader);
}

/** Returns false if the bytes cannot be an HTTP/1 response. A peer of another protocol may never send a line end. */
function mayBeHttp1({ buffer, start, end }: Http1Connection): boolean {
  const size = Math.min(end - start, PREFIX.length);
  for (let index = 0; index < size; index++) if (buffer[start + index] !== PREFIX[index]) return false;
  return true;
}

/** Returns true for a SETTINGS or GOAWAY frame on stream 0, with which an HTTP/2 server begins. */
function isHttp2({ buffer, start, end }: Http1Connection): boolean {
  const type = buffer[start + 3];
  return end - start >= FRAME_HEADER_BYTES && (type === SETTINGS || type === GOAWAY) &&
    buffer.subarray(start + 5, start + FRAME_HEADER_BYTES).every((byte) => byte === 0);
}
