/** Finds and parses the head of a response. Everything that parsers might interpret differently is refused. */
import { Buffer } from "node:buffer";
import type { Span } from "../text.ts";
import type { ReceiveBuffer } from "./body_reader.ts";
import { HttpVersionError, MalformedResponse } from "./errors.ts";

/** Maximum number of bytes of one head. */
export const HEAD_BYTES = 64 * 1024;
/** Maximum number of headers of one head. */
export const HEAD_LINES = 256;
/** Longest line of a head, in bytes. */
export const LINE_BYTES = 16 * 1024;

/** The response headers whose values are kept. All headers are checked. */
export const RESPONSE_HEADERS = [
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "keep-alive",
  "request-id",
  "retry-after",
  "retry-after-ms",
  "transfer-encoding",
  "upgrade",
  "x-should-retry",
  "x-request-id",
] as const;

/** Name of a kept header. */
export type ResponseHeaderName = (typeof RESPONSE_HEADERS)[number];

const KEPT: ReadonlySet<string> = new Set(RESPONSE_HEADERS);
const isKept = (name: string): name is ResponseHeaderName => KEPT.has(name);

const LF = 10, CR = 13;

/** Matches a whole head, one character per byte, in linear time: no name has a colon, and no value a CR. */
const HEAD =
  /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n$/;
/** Shortest head that may have too many or too long lines, in bytes. */
const CHECKED_BYTES = 4 * HEAD_LINES;

/** Matches headers with these names in a head, with their trimmed values. The lookahead keeps the time linear. */
const headersNamed = (names: string) => new RegExp(`\n(${names}):[\t ]*(?![\t ])([^\r]*[^\r\t ])?`, "gi");
const KEPT_HEADERS = headersNamed(RESPONSE_HEADERS.join("|"));
const ALL_HEADERS = headersNamed("[^:\r]+");

/** Status line and headers of a response. */
export interface ResponseHead {
  /** Minor version, of HTTP/1.0 or HTTP/1.1. */
  minor: 0 | 1;
  status: number;
  /** Trimmed values, one character per byte. The values of repeated headers are joined by commas. */
  headers: Partial<Record<ResponseHeaderName, string>>;
  /** Other headers that the caller's filter selected, in their order; absent if there are none. */
  others?: ResponseHeader[];
}

/** Name in lower case, and value with one character per byte. */
export type ResponseHeader = [name: string, value: string];

/** Returns true for the name, in lower case, of a header that is kept besides `RESPONSE_HEADERS`. */
export type HeaderFilter = (name: string) => boolean;

/** Length of an HTTP/2 frame header (RFC 9113, section 4.1). */
const FRAME_HEADER_BYTES = 9;
/** Types of HTTP/2 frames (RFC 9113, section 6). */
const SETTINGS = 4;
const GOAWAY = 7;

/** The bytes with which every HTTP/1 response begins. */
const PREFIX = [..."HTTP/1."].map((char) => char.charCodeAt(0));

/**
 * Consumes the next head; returns undefined if it is incomplete. A connection buffers at most `HEAD_BYTES` of it.
 * @param seen number of bytes that earlier calls have searched
 * @throws {MalformedResponse}; {HttpVersionError} for a peer that speaks HTTP/2
 */
export function takeHead(
  inbox: ReceiveBuffer,
  seen: number,
  keepsHeader: HeaderFilter | undefined,
): ResponseHead | undefined {
  const { buffer, start, end } = inbox;
  if (seen < PREFIX.length && !mayBeHttp1(inbox)) {
    if (isHttp2(inbox)) throw new HttpVersionError("The peer speaks only HTTP/2");
    throw new MalformedResponse("The peer does not speak HTTP/1");
  }
  const headEnd = findHeadEnd(buffer, { start, seen: start + seen, end });
  if (headEnd < 0) return undefined;
  inbox.start = headEnd;
  return parseHead(buffer, { start, end: headEnd }, keepsHeader);
}

/** Returns false if the bytes cannot be an HTTP/1 response. A peer of another protocol may never send a line end. */
function mayBeHttp1({ buffer, start, end }: ReceiveBuffer): boolean {
  const size = Math.min(end - start, PREFIX.length);
  for (let index = 0; index < size; index++) if (buffer[start + index] !== PREFIX[index]) return false;
  return true;
}

/** Returns true for a SETTINGS or GOAWAY frame on stream 0: an HTTP/2 server begins with one. */
function isHttp2({ buffer, start, end }: ReceiveBuffer): boolean {
  const type = buffer[start + 3];
  return end - start >= FRAME_HEADER_BYTES && (type === SETTINGS || type === GOAWAY) &&
    buffer.subarray(start + 5, start + FRAME_HEADER_BYTES).every((byte) => byte === 0);
}

/**
 * Returns the index after the first empty line between `start` and `end`; -1 if it has not yet arrived. The search
 * begins at `seen`, before which there is no empty line.
 * @throws {MalformedResponse} at a line that does not end in CR and LF
 */
export function findHeadEnd(bytes: Uint8Array, { start, seen, end }: Span & { seen: number }): number {
  for (let at = seen; at < end; at++) {
    if (bytes[at] !== LF) continue;
    if (at === start || bytes[at - 1] !== CR) throw new MalformedResponse("A line of the head ends in a bare LF");
    if (at - 1 === start) throw new MalformedResponse("The head begins with an empty line");
    if (bytes[at - 2] === LF) return at + 1;
  }
  return -1;
}

/** Parses a head, including the empty line that `findHeadEnd` found. @throws {MalformedResponse} */
export function parseHead(
  bytes: Uint8Array,
  { start, end }: Span = { start: 0, end: bytes.length },
  keepsHeader?: HeaderFilter,
): ResponseHead {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
  const [, minor, status] = HEAD.exec(text) ?? [];
  if (status === undefined) throw new MalformedResponse("The head is not an HTTP/1 head");
  // The status line comes before the headers, and the empty line and nothing after them.
  const lines = text.length > CHECKED_BYTES ? text.split("\r\n") : [];
  if (lines.length - 3 > HEAD_LINES || lines.some(({ length }) => length + 2 > LINE_BYTES)) {
    throw new MalformedResponse("The head has too many lines, or one that is too long");
  }
  const head: ResponseHead = { minor: minor === "0" ? 0 : 1, status: Number(status), headers: {} };
  for (const [, spelled = "", value = ""] of text.matchAll(keepsHeader === undefined ? KEPT_HEADERS : ALL_HEADERS)) {
    const name = spelled.toLowerCase();
    if (isKept(name)) {
      const previous = head.headers[name];
      head.headers[name] = previous === undefined ? value : `${previous}, ${value}`;
    } else if (keepsHeader?.(name) === true) (head.others ??= []).push([name, value]);
  }
  return head;
}

/** The end of a body: its length in bytes, its last chunk, or the end of the connection. */
export type BodyFraming = number | "chunked" | "close";

/** Framing of the body, and whether the connection stays open. */
export interface ResponseFraming {
  framing: BodyFraming;
  /** True if the connection stays open after the response. */
  isPersistent: boolean;
  /** Time that the peer keeps it open, in milliseconds; absent if it does not announce that. */
  keepAliveMs?: number;
}

/** Matches the timeout in `keep-alive`, in seconds. */
const KEEP_ALIVE = /(?:^|[,; ])timeout=(\d{1,6})(?:$|[,; ])/i;

/**
 * Returns the framing of the body of an answer to POST from a final head.
 * @throws {MalformedResponse} if the head is ambiguous, or parsers might understand it differently
 */
export function readFraming(head: ResponseHead): ResponseFraming {
  const coding = head.headers["transfer-encoding"];
  const length = readLength(head.headers["content-length"]);
  if (coding !== undefined) {
    if (length !== undefined) throw new MalformedResponse("The head has a length and a transfer coding");
    if (head.minor === 0) throw new MalformedResponse("The head of an HTTP/1.0 answer has a transfer coding");
    if (coding.toLowerCase() !== "chunked") throw new MalformedResponse("The transfer coding is not chunked");
  }
  const isPersistent = keepsOpen(head);
  const announced = isPersistent ? head.headers["keep-alive"] : undefined;
  const seconds = announced && KEEP_ALIVE.exec(announced)?.[1];
  const keepAliveMs = seconds ? Number(seconds) * 1000 : undefined;
  const { status } = head;
  if (status === 204 || status === 304) {
    // A peer that announces a body with status 204 may send one.
    const hasNoBody = status !== 204 || (coding === undefined && (length ?? 0) === 0);
    return { framing: 0, isPersistent: isPersistent && hasNoBody, keepAliveMs };
  }
  if (coding !== undefined) return { framing: "chunked", isPersistent, keepAliveMs };
  if (length === undefined) return { framing: "close", isPersistent: false };
  return { framing: length, isPersistent, keepAliveMs };
}

/** Reads `content-length`. Repeated equal lengths count as one (RFC 9112, section 6.3). @throws {MalformedResponse} */
function readLength(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,15}$/.test(value)) return Number(value);
  const [first, ...others] = value.split(",").map((text) => /^[ \t]*(\d{1,16})[ \t]*$/.exec(text)?.[1]);
  if (others.some((other) => other !== first)) throw new MalformedResponse("The head has two lengths");
  const length = Number(first);
  if (!Number.isSafeInteger(length)) throw new MalformedResponse("The length is not a number of bytes");
  return length;
}

function keepsOpen(head: ResponseHead): boolean {
  const value = head.headers.connection;
  if (value === undefined) return head.minor === 1;
  const options = value.toLowerCase().split(",").map((option) => option.trim());
  if (options.includes("close")) return false;
  return head.minor === 1 || options.includes("keep-alive");
}
