/** Serializes requests into bytes, and pools the buffers for that. */
import { Buffer } from "node:buffer";

/** A body: as a whole, as bytes, or as a stream that is read as fast as the peer receives it. */
export type OutgoingBody = WholeBody | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;

/** A serialized request, which may be written twice. */
export interface PackedRequest {
  /** The first write: the head, or the whole request if it is small. */
  readonly first: Uint8Array;
  /** The second write: the body; absent if `first` has it, or if it is a stream. */
  readonly second?: Uint8Array | undefined;
  /** A body that is a stream. It is sent in chunks if its length is not known. */
  readonly stream?: ReadableStream<Uint8Array> | undefined;
  /** Length of the stream in bytes; absent if it is not known. */
  readonly streamBytes?: number | undefined;
  /** Frees the buffers. The request must not be written again. */
  drop(): void;
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

/** Bytes reserved for the head before a body in the same buffer. */
const HEAD_ROOM = 4 * 1024;

/** Writes the heads of requests to one URL. A head equal to the last one is reused, which saves 2 µs. */
export class HeadCache {
  readonly #address: RequestAddress;
  #last: HeadFields & { size: number; begin: Uint8Array } | undefined;

  constructor(address: RequestAddress) {
    this.#address = address;
  }

  /**
   * Returns all lines of a head except the one about the body's length.
   * @throws {TypeError} for values that a head cannot contain
   */
  begin(fields: HeadFields): Uint8Array {
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

/**
 * Serializes a request. Head and body of a small request become one write.
 * @param begin as `HeadCache.begin` returns it
 */
export function packRequest(
  begin: Uint8Array,
  { body, bodyBytes, buffers }: { body: OutgoingBody; bodyBytes?: number; buffers: BufferPool },
): PackedRequest {
  if (body instanceof ReadableStream) {
    return { first: withEnd(begin, bodyBytes), stream: body, streamBytes: bodyBytes, drop() {} };
  }
  if (body instanceof Uint8Array) return withBytes(begin, body);
  const pieces = typeof body === "string" ? [body] : body;
  return packSmall(begin, { pieces, buffers }) ?? withBytes(begin, joinPieces(pieces));
}

function withBytes(begin: Uint8Array, bytes: Uint8Array<ArrayBuffer>): PackedRequest {
  return { first: withEnd(begin, bytes.length), second: bytes.length === 0 ? undefined : bytes, drop() {} };
}

/**
 * Writes the body first, then the head before it, which contains its length.
 * @returns `undefined` if it does not fit
 */
function packSmall(
  begin: Uint8Array,
  { pieces, buffers }: { pieces: readonly BodyPiece[]; buffers: BufferPool },
): PackedRequest | undefined {
  // A text has one to three bytes per code unit.
  let minBytes = 0;
  let maxBytes = 0;
  for (const piece of pieces) {
    minBytes += piece.length;
    maxBytes += typeof piece === "string" ? piece.length * 3 : piece.length;
  }
  if (minBytes > BUFFER_BYTES - HEAD_ROOM) return undefined;
  const buffer = buffers.take(Math.min(HEAD_ROOM + maxBytes, BUFFER_BYTES));
  const bodyEnd = writePieces(pieces, { into: buffer, start: HEAD_ROOM });
  const end = writeHeadEnd((bodyEnd ?? 0) - HEAD_ROOM);
  const start = HEAD_ROOM - end.length - begin.length;
  if (bodyEnd === undefined || start < 0) {
    buffers.give(buffer);
    return undefined;
  }
  buffer.set(begin, start);
  writeLatin1(end, buffer, start + begin.length);
  let ownsBuffer = true;
  return {
    first: buffer.subarray(start, bodyEnd),
    drop() {
      if (ownsBuffer) buffers.give(buffer);
      ownsBuffer = false;
    },
  };
}

function withEnd(begin: Uint8Array, bodyBytes: number | undefined): Uint8Array {
  const end = writeHeadEnd(bodyBytes);
  const bytes = new Uint8Array(begin.length + end.length);
  bytes.set(begin);
  writeLatin1(end, bytes, begin.length);
  return bytes;
}

function latin1Bytes(text: string): Uint8Array {
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

/** Returns all lines except the one about the body's length, one character per byte. @throws {TypeError} as `HeadCache.begin` */
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
  /** Writes the piece at `start`. @returns where it ends; `undefined` if there is not enough room */
  write(into: Uint8Array, start: number): number | undefined;
}

/** A piece of a body: bytes, a text that is sent in UTF-8, or a piece that writes itself. */
export type BodyPiece = string | Uint8Array<ArrayBuffer> | LazyPiece;

/** A body that is known completely, so that it can be sent more than once. */
export type WholeBody = string | readonly BodyPiece[];

const encoder = new TextEncoder();

/** Writes pieces one after another from `start` on. @returns where they end; `undefined` if there is not enough room */
function writePieces(
  pieces: readonly BodyPiece[],
  { into, start }: { into: Uint8Array; start: number },
): number | undefined {
  let end = start;
  for (const piece of pieces) {
    if (typeof piece === "string") {
      const { read, written } = encoder.encodeInto(piece, into.subarray(end));
      if (read < piece.length) return undefined;
      end += written;
    } else if (piece instanceof Uint8Array) {
      if (end + piece.length > into.length) return undefined;
      into.set(piece, end);
      end += piece.length;
    } else {
      const pieceEnd = piece.write(into, end);
      if (pieceEnd === undefined) return undefined;
      end = pieceEnd;
    }
  }
  return end;
}

/** Returns the bytes of all pieces, joined. */
export function joinPieces(pieces: readonly BodyPiece[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const piece of pieces) length += typeof piece === "string" ? Buffer.byteLength(piece) : piece.length;
  const bytes = new Uint8Array(length);
  writePieces(pieces, { into: bytes, start: 0 });
  return bytes;
}

/** Length of a large buffer, in bytes. */
export const BUFFER_BYTES = 64 * 1024;
/** Length of a small buffer, in bytes. Allocating a large buffer would cost more than its use. */
const SMALL_BYTES = 16 * 1024;
/** Most free buffers of each length. */
const MAX_FREE = 64;

/** A buffer from the pool. It may contain old data. */
export type PooledBuffer = Uint8Array<ArrayBuffer>;

/** A pool of buffers of two lengths. */
export interface BufferPool {
  /** Returns a buffer of at least this length. @param minBytes at most `BUFFER_BYTES` */
  take(minBytes: number): PooledBuffer;
  /** Returns a buffer to the pool. */
  give(buffer: PooledBuffer): void;
}

/** Creates an empty pool. */
export function createBufferPool(): BufferPool {
  const small: PooledBuffer[] = [];
  const large: PooledBuffer[] = [];
  return {
    take(minBytes) {
      return minBytes <= SMALL_BYTES
        ? small.pop() ?? new Uint8Array(SMALL_BYTES)
        : large.pop() ?? new Uint8Array(BUFFER_BYTES);
    },
    give(buffer) {
      const free = buffer.length === SMALL_BYTES ? small : large;
      if (free.length < MAX_FREE) free.push(buffer);
    },
  };
}
