/** Finding the final head of an answer. */
import { HttpVersionError, MalformedResponse } from "./errors.ts";
import type { Http1Connection } from "./connection.ts";
import { findHeadEnd, parseHead, type ResponseHead } from "./response_head.ts";

/** Bytes of an HTTP/2 frame's own head, and types of frames (RFC 9113, 4.1 and 6). */
const FRAME_BYTES = 9;
const SETTINGS = 4;
const GOAWAY = 7;

/** Most interim answers before the one that counts. */
const INTERIM = 16;

const BEGINNING = [..."HTTP/1."].map((char) => char.charCodeAt(0));

/** Looks for the final head of an answer in what has come. Whoever waits for more does so by himself: one promise less. */
export class HeadReader {
  readonly #connection: Http1Connection;
  /** What was looked at before, so many bytes, is not looked at again. */
  #seen = 0;
  #interim = 0;

  constructor(connection: Http1Connection) {
    this.#connection = connection;
  }

  /** The final head, where all of it is there, as far as the body. @throws {MalformedResponse}, `HttpVersionError` */
  take(): ResponseHead | undefined {
    const connection = this.#connection;
    for (let head = takeHead(connection, this.#seen); head !== undefined; head = takeHead(connection, 0)) {
      if (head.status === 101) throw new MalformedResponse("The peer changes to a protocol that nobody asked for");
      if (head.status >= 200) return head;
      if (++this.#interim > INTERIM) throw new MalformedResponse("There are too many interim answers");
    }
    this.#seen = connection.end - connection.start;
    return undefined;
  }
}

/** The next head, where all of it is there. One that is too long never is: a connection keeps no more than `HEAD_BYTES`. */
function takeHead(connection: Http1Connection, seen: number): ResponseHead | undefined {
  const { buffer, start, end } = connection;
  if (seen < BEGINNING.length && !beginsRight(connection)) {
    if (beginsAsHttp2(connection)) throw new HttpVersionError("The peer speaks HTTP/2 alone");
    throw new MalformedResponse("The peer does not speak HTTP/1");
  }
  const after = findHeadEnd(buffer, { start, seen: start + seen, end });
  if (after < 0) return undefined;
  connection.start = after;
  return parseHead(buffer, { start, end: after });
}

/** Whether what came may become a status line: who speaks something else may never end its first line. */
function beginsRight({ buffer, start, end }: Http1Connection): boolean {
  const size = Math.min(end - start, BEGINNING.length);
  for (let at = 0; at < size; at++) if (buffer[start + at] !== BEGINNING[at]) return false;
  return true;
}

/** Whether a frame came that HTTP/2 begins or ends with, on the stream of the connection itself. */
function beginsAsHttp2({ buffer, start, end }: Http1Connection): boolean {
  const type = buffer[start + 3];
  return end - start >= FRAME_BYTES && (type === SETTINGS || type === GOAWAY) &&
    buffer.subarray(start + 5, start + FRAME_BYTES).every((byte) => byte === 0);
}
