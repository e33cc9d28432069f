/** Finds the final head of a response. */
import { HttpVersionError, MalformedResponse } from "./errors.ts";
import type { Http1Connection } from "./connection.ts";
import { findHeadEnd, type HeaderFilter, parseHead, type ResponseHead } from "./response_head.ts";

/** Length of an HTTP/2 frame header and two frame types (RFC 9113, sections 4.1 and 6). */
const FRAME_BYTES = 9;
const SETTINGS = 4;
const GOAWAY = 7;

/** Most 1xx responses before the final one. */
const INTERIM = 16;

const BEGINNING = [..."HTTP/1."].map((char) => char.charCodeAt(0));

/** Looks for the final head in the received bytes. The caller waits for more, which saves a promise. */
export class HeadReader {
  readonly #connection: Http1Connection;
  /** Bytes that were searched already. */
  #seen = 0;
  #interim = 0;
  readonly #keeps: HeaderFilter | undefined;

  constructor(connection: Http1Connection, keeps: HeaderFilter | undefined) {
    this.#connection = connection;
    this.#keeps = keeps;
  }

  /** The final head, once all of it has arrived. @throws {MalformedResponse}, `HttpVersionError` */
  take(): ResponseHead | undefined {
    const connection = this.#connection;
    const keeps = this.#keeps;
    for (let head = takeHead(connection, this.#seen, keeps); head; head = takeHead(connection, 0, keeps)) {
      if (head.status === 101) throw new MalformedResponse("The peer changes to a protocol that nobody asked for");
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
  keeps: HeaderFilter | undefined,
): ResponseHead | undefined {
  const { buffer, start, end } = connection;
  if (seen < BEGINNING.length && !beginsRight(connection)) {
    if (beginsAsHttp2(connection)) throw new HttpVersionError("The peer speaks HTTP/2 alone");
    throw new MalformedResponse("The peer does not speak HTTP/1");
  }
  const after = findHeadEnd(buffer, { start, seen: start + seen, end });
  if (after < 0) return undefined;
  connection.start = after;
  return parseHead(buffer, { start, end: after }, keeps);
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
