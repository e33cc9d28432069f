/** Errors of connections and responses. */

/** The peer sent something that is not HTTP/1.1. Its connection is closed. */
export class MalformedResponse extends Error {
  override readonly name = "MalformedResponse";
}

/** The connection ended before the response did. */
export class ConnectionEnded extends Error {
  override readonly name = "ConnectionEnded";
  constructor(before = "the answer") {
    super(`The connection ended before ${before}`);
  }
}

/** The peer requires another HTTP version. It has not begun to process the request. */
export class HttpVersionError extends Error {
  override readonly name = "HttpVersionError";
}
