/** The requests and responses of the client. */
import type { WholeBody } from "./pack_request.ts";
import type { ResponseHeader, ResponseHeaderName } from "./response_head.ts";

/** Time limits of one request, in milliseconds. */
export interface PhaseLimits {
  /** Time to open a connection. A reused connection needs none. */
  connectMs: number;
  /** Time from the start until the head of the response, or until the first bytes of its body: see `begins`. */
  firstByteMs: number;
  /** Time between two pieces of the response. */
  idleMs: number;
  /**
   * The event that ends `firstByteMs` and begins `idleMs`: the head of the response, or the first bytes of its body for
   * hosts that send the head at once and compute afterwards. Absent: the head.
   */
  begins?: "head" | "body";
  /** Time for the whole exchange. */
  totalMs: number;
}

/** A POST request. */
export interface Http1Request {
  url: string;
  /** All headers except `accept-encoding`, `user-agent`, and those about framing and the connection. */
  headers: Readonly<Record<string, string>>;
  /** A stream is read as fast as the host receives it. */
  body: WholeBody | ReadableStream<Uint8Array>;
  /** Length of a stream in bytes; absent if it is not known. The stream is sent in chunks then. */
  bodyBytes?: number;
  /** True if the request must use a new connection. */
  fresh?: boolean;
  signal: AbortSignal;
  limits: PhaseLimits;
}

/** A response while it arrives. */
export interface Http1Response {
  status: number;
  /** Returns the value of a header; null if the response does not have it. */
  header(name: ResponseHeaderName): string | null;
  /** Other headers that the client's filter selected; absent if there are none. */
  readonly others?: readonly ResponseHeader[] | undefined;
  /**
   * Returns the next bytes; `undefined` after the last.
   * @throws {GatewayError} `timeout`, or `upstream` if the connection breaks
   */
  read(): Promise<Uint8Array | undefined>;
  /**
   * Returns the whole body as text.
   * @throws {GatewayError} as `read`, and `upstream` if it has more than `limitBytes`
   */
  text(limitBytes: number): Promise<string>;
  /**
   * Ends reading, if the caller needs no more of the response. A short rest is read in the background, so that the
   * connection can be reused. If the rest is long, the connection is closed.
   */
  release(): void;
  /** Ends the request. May be called at any time and repeatedly. Does nothing after `release`. */
  cancel(): void;
}
