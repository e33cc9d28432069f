/** An HTTP/1.1 client on the runtime's sockets: strict about framing, with its own connection pool and time limits. */
export { joinPieces } from "./pack_request.ts";
export { HttpVersionError } from "./errors.ts";
export { createHttp1Client, type Http1Client } from "./client.ts";
export { Dialer } from "./dialer.ts";
export { RequestTimer } from "./request_timer.ts";
export { type HeaderFilter, RESPONSE_HEADERS, type ResponseHeader } from "./response_head.ts";
export type { Http1Request, Http1Response } from "./types.ts";
