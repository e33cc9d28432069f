/** The head of an answer: found in bytes, and read from text. Strict: what two readers may understand differently is refused. */
import { BrokenAnswer } from "./broken_answer.ts";

/** Most bytes of one head. */
export const HEAD_BYTES = 64 * 1024;
/** Most headers of one head. */
export const HEAD_LINES = 256;
/** Longest line of a head, in bytes. */
export const LINE_BYTES = 16 * 1024;

const LF = 10;
const CR = 13;

const STATUS_LINE = /HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/y;
/** No space before the colon, no folded line, no control character, no bare CR or LF. */
const HEADER_LINE = /([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)\r\n/y;

/** What stands before an answer's body. */
export interface Head {
  /** The last digit of its version: HTTP/1.0 or HTTP/1.1. */
  minor: 0 | 1;
  status: number;
  /** The headers' names, in lower case, in the order they came. */
  names: readonly string[];
  /** Their values, without the space around them. */
  values: readonly string[];
}

/**
 * Where the body begins: after the first empty line of `bytes` between `start` and `end`, or -1 where it has yet to come.
 * What was looked at before, up to `seen`, is not looked at again.
 * @throws {BrokenAnswer} at a line that does not end in CR and LF
 */
export function findHeadEnd(
  bytes: Uint8Array,
  { start, seen, end }: { start: number; seen: number; end: number },
): number {
  for (let at = seen; at < end; at++) {
    if (bytes[at] !== LF) continue;
    if (at === start || bytes[at - 1] !== CR) throw new BrokenAnswer("A line of the head ends in a bare LF");
    if (at - 1 === start) throw new BrokenAnswer("The head begins with an empty line");
    if (bytes[at - 2] === LF) return at + 1;
  }
  return -1;
}

/** Reads a head with the empty line at its end. @throws {BrokenAnswer} */
export function parseHead(text: string): Head {
  STATUS_LINE.lastIndex = 0;
  const first = STATUS_LINE.exec(text);
  if (first === null || first[0].length > LINE_BYTES) throw new BrokenAnswer("The status line is none of HTTP/1");
  const names: string[] = [];
  const values: string[] = [];
  let at = STATUS_LINE.lastIndex;
  const end = text.length - 2;
  while (at < end) {
    HEADER_LINE.lastIndex = at;
    const line = HEADER_LINE.exec(text);
    if (line === null) throw new BrokenAnswer("A line of the head is no header");
    if (line[0].length > LINE_BYTES) throw new BrokenAnswer("A line of the head is too long");
    if (names.length === HEAD_LINES) throw new BrokenAnswer("The head has too many lines");
    at = HEADER_LINE.lastIndex;
    names.push((line[1] ?? "").toLowerCase());
    values.push(trimEnd(line[2] ?? ""));
  }
  if (at !== end) throw new BrokenAnswer("The head does not end where its last line does");
  return { minor: first[1] === "0" ? 0 : 1, status: Number(first[2]), names, values };
}

/** The value of a header, those of its repetitions joined by commas; `null` where there is none. The name is in lower case. */
export function headerOf({ names, values }: Pick<Head, "names" | "values">, name: string): string | null {
  let found: string | null = null;
  for (let at = names.indexOf(name); at >= 0; at = names.indexOf(name, at + 1)) {
    found = found === null ? values[at] ?? "" : `${found}, ${values[at]}`;
  }
  return found;
}

const decoder = new TextDecoder();

/** Bytes of a head as text, one character each. */
export function headText(bytes: Uint8Array): string {
  const text = decoder.decode(bytes);
  // One character per byte: there was nothing but ASCII, or almost.
  return text.length === bytes.length && !text.includes("\ufffd") ? text : latin1(bytes);
}

function latin1(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

/** A regular expression that looks for space at a text's end takes its time with spaces elsewhere. */
function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === " " || text[end - 1] === "\t")) end--;
  return end === text.length ? text : text.slice(0, end);
}
