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

/** A request to serialize. */
export interface UnpackedRequest {
  /** Path and query. */
  target: string;
  /** Name and port, as in the URL. */
  host: string;
  headers: Readonly<Record<string, string>>;
  /** True if the peer is asked to close the connection after the request. */
  closes: boolean;
  body: OutgoingBody;
  /** Length of a stream in bytes; absent if it is not known. */
  bodyBytes?: number | undefined;
}

/** Serializes a request. @throws {TypeError} for a header that cannot be sent */
export function packRequest(parts: UnpackedRequest): PackedRequest {
  const { body, bodyBytes } = parts;
  if (body instanceof ReadableStream) {
    return { first: encoder.encode(writeHead(parts, bodyBytes)), stream: body, streamBytes: bodyBytes };
  }
  if (body instanceof Uint8Array) {
    return { first: encoder.encode(writeHead(parts, body.length)), second: body.length === 0 ? undefined : body };
  }
  const pieces = typeof body === "string" ? [body] : body;
  const length = lengthOf(pieces);
  const head = writeHead(parts, length);
  return { first: joinPieces([head, ...pieces], head.length + length) };
}

/** Values of headers: no control characters, such as CR and LF. */
const VALUE = /^[\t\x20-\x7e]*$/;

/**
 * Writes a head, in ASCII: URLs escape other characters, and the callers choose the names of the headers.
 * @param bodyBytes length of the body; undefined: it is sent in chunks
 */
function writeHead({ target, host, headers, closes }: UnpackedRequest, bodyBytes: number | undefined): string {
  let head = `POST ${target} HTTP/1.1\r\nhost: ${host}\r\naccept-encoding: identity\r\nuser-agent: sluice\r\n`;
  for (const name in headers) {
    const value = headers[name] ?? "";
    if (!VALUE.test(value)) throw new TypeError("Cannot write the request: a header has an invalid character");
    head += `${name}: ${value}\r\n`;
  }
  if (closes) head += "connection: close\r\n";
  return head +
    (bodyBytes === undefined ? "transfer-encoding: chunked\r\n\r\n" : `content-length: ${bodyBytes}\r\n\r\n`);
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
export function joinPieces(
  pieces: readonly (BodyPiece | Uint8Array)[],
  length = lengthOf(pieces),
): Uint8Array<ArrayBuffer> {
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
function lengthOf(pieces: readonly (BodyPiece | Uint8Array)[]): number {
  let length = 0;
  for (const piece of pieces) length += typeof piece === "string" ? Buffer.byteLength(piece) : piece.length;
  return length;
}
