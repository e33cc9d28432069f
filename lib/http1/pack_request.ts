/** Serializes requests. */
import { type BodyPiece, joinPieces, leastBytes, mostBytes, type WholeBody, writePieces } from "./body_pieces.ts";
import { writeHeadBegin, writeHeadEnd, writeLatin1 } from "./request_head.ts";
import { BUFFER_BYTES, type BufferPool, type PooledBuffer } from "./buffer_pool.ts";

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
  if (leastBytes(pieces) > BUFFER_BYTES - HEAD_ROOM) return undefined;
  const scratch = scratches.take(Math.min(HEAD_ROOM + mostBytes(pieces), BUFFER_BYTES));
  const bodyEnd = writePieces(pieces, { into: scratch, start: HEAD_ROOM });
  const end = writeHeadEnd((bodyEnd ?? 0) - HEAD_ROOM);
  const start = HEAD_ROOM - end.length - begin.length;
  if (bodyEnd === undefined || start < 0) {
    scratches.give(scratch);
    return undefined;
  }
  scratch.set(begin, start);
  writeLatin1(end, scratch, start + begin.length);
  return new Small(scratch, { first: scratch.subarray(start, bodyEnd), scratches });
}

/** A request in a pooled buffer. */
class Small implements PackedRequest {
  readonly first: Uint8Array;
  readonly #scratches: BufferPool;
  #scratch: PooledBuffer | undefined;

  constructor(scratch: PooledBuffer, { first, scratches }: { first: Uint8Array; scratches: BufferPool }) {
    this.first = first;
    this.#scratch = scratch;
    this.#scratches = scratches;
  }

  drop(): void {
    if (this.#scratch !== undefined) this.#scratches.give(this.#scratch);
    this.#scratch = undefined;
  }
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
