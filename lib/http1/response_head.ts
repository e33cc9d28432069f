/** Parses the head of a response. It refuses everything that parsers might read differently. */
import { MalformedResponse } from "./errors.ts";

/** Most bytes of one head. */
export const HEAD_BYTES = 64 * 1024;
/** Most headers of one head. */
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
  "x-request-id",
] as const;

/** Name of a kept header. */
export type ResponseHeaderName = (typeof RESPONSE_HEADERS)[number];

const TAB = 9, LF = 10, CR = 13, SPACE = 32, ZERO = 48, ONE = 49, FIVE = 53, COLON = 58;
/** The bit of lower-case letters. Digits and hyphens, the other characters of the kept names, have it, too. */
const LOWER_CASE_BIT = 0x20;

const VERSION_PREFIX = "HTTP/1.";
/** Offset of the status code in the status line, and its length. */
const CODE = VERSION_PREFIX.length + 2;
const CODE_DIGITS = 3;

/** Classes of bytes, as bits: allowed in names, allowed in values. */
const IN_NAME = 1, IN_VALUE = 2;
/** Classes by byte. */
const CLASSES = Uint8Array.from({ length: 256 }, (_, byte) => {
  const isName = /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(String.fromCharCode(byte));
  const isValue = byte === TAB || (byte >= SPACE && byte !== 0x7f);
  return (isName ? IN_NAME : 0) | (isValue ? IN_VALUE : 0);
});

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

/** The bytes of a head, from `start` to before `end`. */
export interface HeadSpan {
  start: number;
  end: number;
}

/**
 * Returns the index after the first empty line between `start` and `end`; -1 if it has not yet arrived. The search
 * begins at `seen`, before which there is no empty line.
 * @throws {MalformedResponse} at a line that does not end in CR and LF
 */
export function findHeadEnd(bytes: Uint8Array, { start, seen, end }: HeadSpan & { seen: number }): number {
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
  { start, end }: HeadSpan = { start: 0, end: bytes.length },
  keepsHeader?: HeaderFilter,
): ResponseHead {
  const head = readStatus(bytes, start);
  const last = end - 2;
  let lines = 0;
  let at = lineEnd(bytes, { at: afterValue(bytes, start + CODE + CODE_DIGITS), begin: start });
  while (at < last) {
    const colon = afterName(bytes, at);
    if (colon === at || bytes[colon] !== COLON) throw new MalformedResponse("A line of the head is no header");
    if (++lines > HEAD_LINES) throw new MalformedResponse("The head has too many lines");
    const stop = afterValue(bytes, colon + 1);
    const next = lineEnd(bytes, { at: stop, begin: at });
    const name = keptHeaderName(bytes, { start: at, end: colon });
    if (name !== undefined) {
      const value = valueText(bytes, { start: colon + 1, end: stop });
      const previous = head.headers[name];
      head.headers[name] = previous === undefined ? value : `${previous}, ${value}`;
    } else if (keepsHeader !== undefined) {
      const other = String.fromCharCode(...bytes.subarray(at, colon)).toLowerCase();
      if (keepsHeader(other)) (head.others ??= []).push([other, valueText(bytes, { start: colon + 1, end: stop })]);
    }
    at = next;
  }
  if (at !== last) throw new MalformedResponse("The head does not end where its last line does");
  return head;
}

/** Reads the status line up to its reason phrase. */
function readStatus(bytes: Uint8Array, start: number): ResponseHead {
  let isStatus = true;
  for (let at = 0; at < VERSION_PREFIX.length; at++) isStatus &&= bytes[start + at] === VERSION_PREFIX.charCodeAt(at);
  const minor = bytes[start + VERSION_PREFIX.length];
  let status = 0;
  for (let at = start + CODE; at < start + CODE + CODE_DIGITS; at++) {
    const digit = (bytes[at] ?? 0) - ZERO;
    isStatus &&= digit >= 0 && digit <= 9;
    status = status * 10 + digit;
  }
  const first = bytes[start + CODE] ?? 0;
  const after = bytes[start + CODE + CODE_DIGITS];
  isStatus &&= bytes[start + CODE - 1] === SPACE && first >= ONE && first <= FIVE && (after === SPACE || after === CR);
  if (!isStatus || (minor !== ZERO && minor !== ONE)) throw new MalformedResponse("The status line is none of HTTP/1");
  return { minor: minor === ZERO ? 0 : 1, status, headers: {} };
}

function afterName(bytes: Uint8Array, from: number): number {
  let at = from;
  while (((CLASSES[bytes[at] ?? 0] ?? 0) & IN_NAME) !== 0) at++;
  return at;
}

function afterValue(bytes: Uint8Array, from: number): number {
  let at = from;
  while (((CLASSES[bytes[at] ?? 0] ?? 0) & IN_VALUE) !== 0) at++;
  return at;
}

/** Returns the index after the CR and LF at `at`, which must end the line that starts at `begin`. */
function lineEnd(bytes: Uint8Array, { at, begin }: { at: number; begin: number }): number {
  if (bytes[at] !== CR || bytes[at + 1] !== LF) throw new MalformedResponse("A line of the head is no header");
  if (at + 2 - begin > LINE_BYTES) throw new MalformedResponse("A line of the head is too long");
  return at + 2;
}

/** Returns the kept header with the name at these bytes; undefined if it is not kept. */
function keptHeaderName(bytes: Uint8Array, { start, end }: HeadSpan): ResponseHeaderName | undefined {
  for (const name of RESPONSE_HEADERS) {
    if (name.length === end - start && isName(bytes, { start, name })) return name;
  }
  return undefined;
}

function isName(bytes: Uint8Array, { start, name }: { start: number; name: string }): boolean {
  for (let at = 0; at < name.length; at++) {
    if (((bytes[start + at] ?? 0) | LOWER_CASE_BIT) !== name.charCodeAt(at)) return false;
  }
  return true;
}

/** Returns the trimmed value. */
function valueText(bytes: Uint8Array, span: HeadSpan): string {
  let { start, end } = span;
  while (start < end && (bytes[start] === SPACE || bytes[start] === TAB)) start++;
  while (end > start && (bytes[end - 1] === SPACE || bytes[end - 1] === TAB)) end--;
  let text = "";
  for (let at = start; at < end; at++) text += String.fromCharCode(bytes[at] ?? 0);
  return text;
}

/** The end of a body. */
export type BodyFraming =
  /** There is no body. */
  | { kind: "none" }
  /** After this many bytes. */
  | { kind: "length"; bytes: number }
  | { kind: "chunked" }
  /** At the end of the connection. */
  | { kind: "close" };

/** Framing of the body, and whether the connection stays open. */
export interface ResponseFraming {
  framing: BodyFraming;
  /** True if the connection stays open after the response. */
  isPersistent: boolean;
  /** Time that the peer keeps it open, in milliseconds; absent if it does not announce that. */
  keepAliveMs?: number;
}

const NONE: BodyFraming = { kind: "none" };
const CHUNKED: BodyFraming = { kind: "chunked" };
const CLOSE: BodyFraming = { kind: "close" };

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
  const keepAliveMs = isPersistent ? readKeepAlive(head.headers["keep-alive"]) : undefined;
  const { status } = head;
  if (status === 204 || status === 304) {
    // A peer that announces a body with status 204 may send one.
    const hasNoBody = status !== 204 || (coding === undefined && (length ?? 0) === 0);
    return { framing: NONE, isPersistent: isPersistent && hasNoBody, keepAliveMs };
  }
  if (coding !== undefined) return { framing: CHUNKED, isPersistent, keepAliveMs };
  if (length === undefined) return { framing: CLOSE, isPersistent: false };
  return { framing: length === 0 ? NONE : { kind: "length", bytes: length }, isPersistent, keepAliveMs };
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

function readKeepAlive(value: string | undefined): number | undefined {
  const seconds = value === undefined ? undefined : /(?:^|[,; ])timeout=(\d{1,6})(?:$|[,; ])/i.exec(value)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
