/** Serializes requests. */
import { Buffer } from "node:buffer";

/** A body: whole, as bytes, or as a stream that is pulled as fast as the peer reads. */
export type OutgoingBody = WholeBody | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;

/** A serialized request, which may be written twice. */
export interface PackedRequest {
  /** The first write, or all of the request. */
  readonly first: Uint8Array;
  readonly second?: Uint8Array | undefined;
  /** The rest: plain where its length is known, else in chunks. */
  readonly stream?: ReadableStream<Uint8Array> | undefined;
  readonly streamBytes?: number | undefined;
  /** Frees the buffers: the request is not written again. */
  drop(): void;
}

/** Address of requests, as in their heads. */
export interface RequestAddress {
  /** Path and query. */
  readonly target: string;
  /** Name and port, as in the URL. */
  readonly host: string;
}

/** Headers of a request; `closes` asks the peer to close the connection afterwards. */
export interface HeadFields {
  readonly headers: Readonly<Record<string, string>>;
  readonly closes: boolean;
}

/** Bytes reserved for the head before a body in the same buffer. */
const HEAD_ROOM = 4 * 1024;

/** Heads of the requests to one URL. A head equal to the last one is reused, which saves 2 µs. */
export class HeadCache {
  readonly #direction: RequestAddress;
  #last: HeadFields & { size: number; begin: Uint8Array } | undefined;

  constructor(direction: RequestAddress) {
    this.#direction = direction;
  }

  /** All lines but the one about the body's length. @throws {TypeError} as `writeHead` */
  begin(words: HeadFields): Uint8Array {
    const last = this.#last;
    if (last !== undefined && last.closes === words.closes && isSame(words.headers, last)) return last.begin;
    const { closes } = words;
    const headers = { ...words.headers };
    const all = { ...headers, "accept-encoding": "identity", "user-agent": "sluice" };
    const begin = latin1Bytes(writeHeadBegin({ method: "POST", ...this.#direction, headers: all, closes }));
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

/** Completes a head and adds the body. A small request becomes one write. */
export function packRequest(
  begin: Uint8Array,
  { body, bodyBytes, scratches }: { body: OutgoingBody; bodyBytes?: number; scratches: BufferPool },
): PackedRequest {
  if (body instanceof ReadableStream) {
    return { first: withEnd(begin, bodyBytes), stream: body, streamBytes: bodyBytes, drop() {} };
  }
  if (body instanceof Uint8Array) return withBytes(begin, body);
  const pieces = typeof body === "string" ? [body] : body;
  return packSmall(begin, { pieces, scratches }) ?? withBytes(begin, joinPieces(pieces));
}

function withBytes(begin: Uint8Array, bytes: Uint8Array<ArrayBuffer>): PackedRequest {
  return { first: withEnd(begin, bytes.length), second: bytes.length === 0 ? undefined : bytes, drop() {} };
}

/** Writes the body first and the head before it, as the length is known only then. `undefined` where it does not fit. */
function packSmall(
  begin: Uint8Array,
  { pieces, scratches }: { pieces: readonly BodyPiece[]; scratches: BufferPool },
): PackedRequest | undefined {
  // A text has one to three bytes per code unit.
  let minBytes = 0;
  let maxBytes = 0;
  for (const piece of pieces) {
    minBytes += piece.length;
    maxBytes += typeof piece === "string" ? piece.length * 3 : piece.length;
  }
  if (minBytes > BUFFER_BYTES - HEAD_ROOM) return undefined;
  const scratch = scratches.take(Math.min(HEAD_ROOM + maxBytes, BUFFER_BYTES));
  const bodyEnd = writePieces(pieces, { into: scratch, start: HEAD_ROOM });
  const end = writeHeadEnd((bodyEnd ?? 0) - HEAD_ROOM);
  const start = HEAD_ROOM - end.length - begin.length;
  if (bodyEnd === undefined || start < 0) {
    scratches.give(scratch);
    return undefined;
  }
  scratch.set(begin, start);
  writeLatin1(end, scratch, start + begin.length);
  let isHeld = true;
  return {
    first: scratch.subarray(start, bodyEnd),
    drop() {
      if (isHeld) scratches.give(scratch);
      isHeld = false;
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

/** Request line and headers. */
export interface RequestHead {
  method: string;
  /** Path and query. */
  target: string;
  /** Name and port, as in the URL. */
  host: string;
  headers: Readonly<Record<string, string>>;
  /** Length of the body in bytes; absent: it is sent in chunks. */
  bodyBytes?: number;
  /** True: the connection is closed afterwards. */
  closes: boolean;
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Anything but control characters, CR and LF among them. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const METHOD = /^[A-Z]+$/;
const TARGET = /^\/[\x21-\x7e]*$/;

/** Headers about framing and the connection, which only this part writes. */
const OWN: ReadonlySet<string> = new Set([
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

/** Writes a head, one character per byte. @throws {TypeError} for values that a head cannot hold */
export function writeHead({ bodyBytes, ...head }: RequestHead): string {
  return writeHeadBegin(head) + writeHeadEnd(bodyBytes);
}

/** All lines but the one about the body's length. @throws {TypeError} as `writeHead` */
function writeHeadBegin({ method, target, host, headers, closes }: Omit<RequestHead, "bodyBytes">): string {
  if (!METHOD.test(method) || !TARGET.test(target)) throw new TypeError("Cannot write a request: its line is broken");
  let head = `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\n`;
  for (const name in headers) {
    const value = headers[name] ?? "";
    if (!NAME.test(name) || !VALUE.test(value)) {
      throw new TypeError("Cannot write a request: a header cannot hold this");
    }
    if (OWN.has(name.toLowerCase())) throw new TypeError(`Cannot write a request: "${name}" is not the caller's`);
    head += `${name}: ${value}\r\n`;
  }
  return closes ? `${head}connection: close\r\n` : head;
}

/** The line about the body's length, and the empty line. */
function writeHeadEnd(bodyBytes: number | undefined): string {
  return bodyBytes === undefined ? "transfer-encoding: chunked\r\n\r\n" : `content-length: ${bodyBytes}\r\n\r\n`;
}

/** Writes Latin-1 text into bytes, from `at`. Returns where it ends. */
export function writeLatin1(text: string, bytes: Uint8Array, at: number): number {
  for (let index = 0; index < text.length; index++) bytes[at + index] = text.charCodeAt(index);
  return at + text.length;
}

/** A piece that writes itself into the buffer it is sent from. */
export interface LazyPiece {
  /** In bytes. */
  readonly length: number;
  /** Writes the piece from `start` on. Returns where it ends; `undefined` where there is no room. */
  write(into: Uint8Array, start: number): number | undefined;
}

/** A piece of a body: bytes, a text that is sent in UTF-8, or a piece that writes itself. */
export type BodyPiece = string | Uint8Array<ArrayBuffer> | LazyPiece;

/** A body that is known as a whole, and may be sent more than once. */
export type WholeBody = string | readonly BodyPiece[];

const encoder = new TextEncoder();

/** Writes the pieces one after the other, from `start`. Returns where they end; `undefined` where there is no room. */
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

/** Joins the pieces. */
export function joinPieces(pieces: readonly BodyPiece[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const piece of pieces) length += typeof piece === "string" ? Buffer.byteLength(piece) : piece.length;
  const bytes = new Uint8Array(length);
  writePieces(pieces, { into: bytes, start: 0 });
  return bytes;
}

/** Length of a large buffer, in bytes. */
export const BUFFER_BYTES = 64 * 1024;
/** Length of a small buffer, in bytes: allocating a large one costs more than its use. */
const SMALL_BYTES = 16 * 1024;
/** Most buffers kept of each length. */
const KEPT = 64;

/** A buffer with stale content. */
export type PooledBuffer = Uint8Array<ArrayBuffer>;

/** Buffers of two lengths. */
export interface BufferPool {
  /** A free buffer of at least this length, up to `BUFFER_BYTES`. */
  take(minBytes: number): PooledBuffer;
  /** Returns a buffer to the pool. */
  give(scratch: PooledBuffer): void;
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
    give(scratch) {
      const buffer = scratch.length === SMALL_BYTES ? small : large;
      if (buffer.length < KEPT) buffer.push(scratch);
    },
  };
}
