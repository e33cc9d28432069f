/** How a call of a peer goes wrong. */

/** What a peer says that is no proper HTTP/1.1. Its connection is good for nothing more. */
export class MalformedResponse extends Error {
  override readonly name = "MalformedResponse";
}

/** The connection ended too soon. */
export class ConnectionEnded extends Error {
  override readonly name = "ConnectionEnded";
  constructor(before = "the answer") {
    super(`The connection ended before ${before}`);
  }
}

/** A peer that wants to be spoken to in another version of HTTP: it has certainly begun nothing. */
export class HttpVersionError extends Error {
  override readonly name = "HttpVersionError";
}
