/** Serializes requests into bytes. */
import { Buffer } from "node:buffer";

/** A body: as a whole, as bytes, or as a stream that is read as fast as the peer receives it. */
export type OutgoingBody = WholeBody | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;

/** A serialized request, which may be written twice. */
export interface PackedRequest {
  /** The first write: the whole request, or only its head if the body is bytes or a stream. */
  readonly first: Uint8Array;
  /** The second write: a body that is bytes. */
  readonly second?: Uint8Array | undefined;
  /** A body that is a stream. It is sent in chunks if its length is not known. */
  readonly stream?: ReadableStream<Uint8Array> | undefined;
  /** Length of the stream in bytes; absent if it is not known. */
  readonly streamBytes?: number | undefined;
}

/** Address of a request, as in its head. */
export interface RequestAddress {
  /** Path and query. */
  readonly target: string;
  /** Name and port, as in the URL. */
  readonly host: string;
}

/** The parts of a head that may differ between requests to one URL. */
export interface HeadFields {
  readonly headers: Readonly<Record<string, string>>;
  /** True if the peer is asked to close the connection after the request. */
  readonly closes: boolean;
}

/** Writes the heads of requests to one URL. A head equal to the last one is reused, which saves 2 µs. */
export class HeadCache {
  readonly #address: RequestAddress;
  #last: HeadFields & { size: number; begin: Uint8Array<ArrayBuffer> } | undefined;

  constructor(address: RequestAddress) {
    this.#address = address;
  }

  /**
   * Returns all lines of a head except the one about the body's length.
   * @throws {TypeError} for values that a head cannot contain
   */
  begin(fields: HeadFields): Uint8Array<ArrayBuffer> {
    const last = this.#last;
    if (last !== undefined && last.closes === fields.closes && isSame(fields.headers, last)) return last.begin;
    const { closes } = fields;
    const headers = { ...fields.headers };
    const allHeaders = { ...headers, "accept-encoding": "identity", "user-agent": "sluice" };
    const begin = latin1Bytes(writeHeadBegin(this.#address, { headers: allHeaders, closes }));
    this.#last = { headers, closes, size: Object.keys(headers).length, begin };
    return begin;
  }
}

function isSame(
  headers: Readonly<Record<string, string>>,
  others: { headers: Readonly<Record<string, string>>; size: number },
): boolean {
  let size = 0;
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || value !== others.headers[name]) return false;
    size++;
  }
  return size === others.size;
}

/** Serializes a request. @param begin as `HeadCache.begin` returns it */
export function packRequest(
  begin: Uint8Array<ArrayBuffer>,
  { body, bodyBytes }: { body: OutgoingBody; bodyBytes?: number },
): PackedRequest {
  if (body instanceof ReadableStream) {
    return { first: joinPieces([begin, writeHeadEnd(bodyBytes)]), stream: body, streamBytes: bodyBytes };
  }
  if (body instanceof Uint8Array) {
    return { first: joinPieces([begin, writeHeadEnd(body.length)]), second: body.length === 0 ? undefined : body };
  }
  const pieces = typeof body === "string" ? [body] : body;
  const length = lengthOf(pieces);
  const end = writeHeadEnd(length);
  return { first: joinPieces([begin, end, ...pieces], begin.length + end.length + length) };
}

function latin1Bytes(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length);
  writeLatin1(text, bytes, 0);
  return bytes;
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Anything but control characters, such as CR and LF. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const TARGET = /^\/[\x21-\x7e]*$/;

/** Headers about framing and the connection, which only the client itself writes. */
const CLIENT_HEADERS: ReadonlySet<string> = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "te",
  "trailer",
  "upgrade",
  "keep-alive",
  "expect",
  "proxy-connection",
]);

/**
 * Returns all lines except the one about the body's length, one character per byte.
 * @throws {TypeError} as `HeadCache.begin`
 */
function writeHeadBegin({ target, host }: RequestAddress, { headers, closes }: HeadFields): string {
  if (!TARGET.test(target)) throw new TypeError("Cannot write a request: its line is broken");
  let head = `POST ${target} HTTP/1.1\r\nhost: ${host}\r\n`;
  for (const name in headers) {
    const value = headers[name] ?? "";
    if (!NAME.test(name) || !VALUE.test(value)) {
      throw new TypeError("Cannot write a request: a header cannot hold this");
    }
    if (CLIENT_HEADERS.has(name.toLowerCase())) {
      throw new TypeError(`Cannot write a request: "${name}" is not the caller's`);
    }
    head += `${name}: ${value}\r\n`;
  }
  return closes ? `${head}connection: close\r\n` : head;
}

/** Returns the line about the body's length, and the empty line after it. */
function writeHeadEnd(bodyBytes: number | undefined): string {
  return bodyBytes === undefined ? "transfer-encoding: chunked\r\n\r\n" : `content-length: ${bodyBytes}\r\n\r\n`;
}

/** Writes a Latin-1 text into bytes at `start`. @returns where the text ends */
export function writeLatin1(text: string, bytes: Uint8Array, start: number): number {
  for (let index = 0; index < text.length; index++) bytes[start + index] = text.charCodeAt(index);
  return start + text.length;
}

/** A piece of a body that writes itself into the buffer from which it is sent. */
export interface LazyPiece {
  /** Length in bytes. */
  readonly length: number;
  /** Writes the piece at `start`. */
  write(into: Uint8Array, start: number): void;
}

/** A piece of a body: bytes, a text that is sent in UTF-8, or a piece that writes itself. */
export type BodyPiece = string | Uint8Array<ArrayBuffer> | LazyPiece;

/** A body that is known completely, so that it can be sent more than once. */
export type WholeBody = string | readonly BodyPiece[];

const encoder = new TextEncoder();

/** Returns the bytes of all pieces, joined. @param length of all pieces in bytes; absent: it is counted */
export function joinPieces(pieces: readonly BodyPiece[], length = lengthOf(pieces)): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let start = 0;
  for (const piece of pieces) {
    if (typeof piece === "string") {
      start += encoder.encodeInto(piece, bytes.subarray(start)).written;
      continue;
    }
    if (piece instanceof Uint8Array) bytes.set(piece, start);
    else piece.write(bytes, start);
    start += piece.length;
  }
  return bytes;
}

/** Returns the length of all pieces in bytes. */
function lengthOf(pieces: readonly BodyPiece[]): number {
  let length = 0;
  for (const piece of pieces) length += typeof piece === "string" ? Buffer.byteLength(piece) : piece.length;
  return length;
}
