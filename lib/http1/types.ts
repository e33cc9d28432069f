/** Parameters and results of the client. */
import type { WholeBody } from "./pack_request.ts";
import type { ResponseHeader, ResponseHeaderName } from "./response_head.ts";

/** Time limits of one request, in milliseconds. */
export interface PhaseLimits {
  /** Until the host is reached: a connection is made, or an earlier one shows that the host is alive. */
  connectMs: number;
  /** Until the head of the response. */
  firstByteMs: number;
  /** Between two pieces of the response. */
  idleMs: number;
  /**
   * The event that ends `firstByteMs` and begins `idleMs`: the response's head, or the first bytes of its body, for
   * hosts that send the head at once and compute afterwards. Absent: the head.
   */
  begins?: "head" | "body";
  /** For everything. */
  totalMs: number;
}

/** A POST request. */
export interface Http1Request {
  url: string;
  /** All of them, but for those about framing and the connection, `accept-encoding` and `user-agent`. */
  headers: Readonly<Record<string, string>>;
  /** A stream is pulled as fast as the host takes it. */
  body: WholeBody | ReadableStream<Uint8Array>;
  /** Length of a stream in bytes, where it is known; absent: it is sent in chunks. */
  bodyBytes?: number;
  /** True: the request goes out on a new connection. */
  fresh?: boolean;
  signal: AbortSignal;
  limits: PhaseLimits;
}

/** A response while it arrives. */
export interface Http1Response {
  status: number;
  header(name: ResponseHeaderName): string | null;
  /** Other headers that the client was made to keep; absent: none. */
  readonly others?: readonly ResponseHeader[] | undefined;
  /**
   * The next bytes; `undefined` after the last.
   * @throws {GatewayError} `timeout`, or `upstream` where the connection breaks
   */
  read(): Promise<Uint8Array | undefined>;
  /** The whole body as text. @throws {GatewayError} as `read`, and `upstream` where it has more than `limitBytes` */
  text(limitBytes: number): Promise<string>;
  /**
   * Gives up the rest of a response whose end has been understood. A short rest is read in the background, so that the
   * connection can carry the next request; a longer one closes it.
   */
  release(): void;
  /** Ends the request. Safe at any time, more than once; does nothing after `release`. */
  cancel(): void;
}
