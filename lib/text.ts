/** Encodes, decodes and cuts texts without splitting characters, also in steps or from chunks. */

/** UTF-16 code units encoded in one step: about 0.5 ms if each takes three bytes. */
const ENCODE_STEP_UNITS = 131_072;

const encoder = new TextEncoder();

/** Returns whether a code unit is the first half of a surrogate pair. */
export function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** Returns the last offset up to `end` that does not split a surrogate pair. */
export function characterEnd(text: string, end: number): number {
  if (end >= text.length) return text.length;
  return isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end;
}

/** Control characters, line separators, and controls of the writing direction, which reorder what follows them. */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/**
 * Returns the first `maxUnits` code units of a text for display: trimmed, with control characters as spaces and lone
 * surrogates replaced.
 */
export function plainText(text: string, maxUnits: number): string {
  return text.slice(0, characterEnd(text, maxUnits)).replace(CONTROLS, " ").toWellFormed().trim();
}

/** Formats an integer with thousands separators: `8,294,400`. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** Encodes a text in steps for `runSliced`. In one step, 10 million Han characters would take 50 ms. */
export function* encodeUtf8(
  text: string,
  stepUnits: number = ENCODE_STEP_UNITS,
): Generator<void, Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (let from = 0; from < text.length;) {
    const to = characterEnd(text, from + stepUnits);
    const chunk = encoder.encode(text.slice(from, to));
    chunks.push(chunk);
    size += chunk.length;
    from = to;
    yield;
  }
  const bytes = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
    yield;
  }
  return bytes;
}

/**
 * Creates a decoder for UTF-8 that arrives in chunks. A call without a chunk flushes it. It drops a byte order mark
 * only at the beginning of the first chunk, whereas the runtime's decoder may drop one at the beginning of a later
 * chunk.
 */
export function utf8Decoder(): (chunk?: Uint8Array) => string {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let hasBegun = false;
  return (chunk) => {
    const text = chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    if (hasBegun || text === "") return text;
    hasBegun = true;
    return text.startsWith("\ufeff") ? text.slice(1) : text;
  };
}

/** A part of a text or of bytes, from `start` up to but not including `end`. */
export interface Span {
  start: number;
  end: number;
}

/** Returns a text with one span replaced. */
export function replaceSpan(text: string, { start, end }: Span, replacement: string): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

/** The error for bytes that are not UTF-8. */
export class Utf8Error extends TypeError {
  override readonly name = "Utf8Error";
  /** Offset of the first invalid byte. */
  readonly offset: number;

  constructor(offset: number, options?: ErrorOptions) {
    super(`Cannot decode byte ${offset} as UTF-8`, options);
    this.offset = offset;
  }
}

/** Bytes decoded in one step: 0.2 ms. */
const DECODE_STEP_BYTES = 262_144;
/** The decoder of the first part skips a byte order mark, that of later parts keeps it. */
const FIRST_DECODER = new TextDecoder("utf-8", { fatal: true });
const LATER_DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Decodes UTF-8, without a byte order mark at its start. @throws {Utf8Error} if the bytes are not UTF-8 */
export function decodeUtf8(bytes: Uint8Array): string {
  return decodePart(bytes, 0, bytes.length);
}

/** Decodes like `decodeUtf8`, in steps for `runSliced`. @throws {Utf8Error} if the bytes are not UTF-8 */
export function* decodeUtf8Steps(bytes: Uint8Array, stepBytes: number = DECODE_STEP_BYTES): Generator<void, string> {
  const parts: string[] = [];
  for (let from = 0; from < bytes.length;) {
    const to = sequenceStart(bytes, from + stepBytes);
    parts.push(decodePart(bytes, from, to));
    from = to;
    yield;
  }
  return parts.join("");
}

function decodePart(bytes: Uint8Array, from: number, to: number): string {
  const part = from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to);
  try {
    return (from === 0 ? FIRST_DECODER : LATER_DECODER).decode(part);
  } catch (cause) {
    throw new Utf8Error(from + firstBadByte(part), { cause });
  }
}

/** Returns the start of the UTF-8 sequence around an offset; the offset itself if no start is within four bytes. */
function sequenceStart(bytes: Uint8Array, offset: number): number {
  if (offset >= bytes.length) return bytes.length;
  for (let at = offset; at > offset - 4; at--) if (((bytes[at] ?? 0) & 0xc0) !== 0x80) return at;
  return offset;
}

/** Returns the offset of the first byte that is not valid UTF-8; the length of `bytes` if all are. */
export function firstBadByte(bytes: Uint8Array): number {
  let at = 0;
  while (at < bytes.length) {
    const size = sequenceLength(bytes, at);
    if (size === 0) return at;
    at += size;
  }
  return bytes.length;
}

/**
 * Returns the length of the well-formed sequence at an offset, by table 3-7 of the Unicode Standard; 0 if none is
 * there.
 */
function sequenceLength(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0;
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  let size = 4;
  if (lead < 0xe0) size = 2;
  else if (lead < 0xf0) size = 3;
  // After some leads, the second byte may have only a part of the usual range.
  let low = 0x80;
  if (lead === 0xe0) low = 0xa0;
  else if (lead === 0xf0) low = 0x90;
  let high = 0xbf;
  if (lead === 0xed) high = 0x9f;
  else if (lead === 0xf4) high = 0x8f;
  const second = bytes[at + 1] ?? 0;
  if (second < low || second > high) return 0;
  for (let index = at + 2; index < at + size; index++) {
    const byte = bytes[index] ?? 0;
    if (byte < 0x80 || byte > 0xbf) return 0;
  }
  return size;
}

/**
 * Encodes a text as UTF-8. The cast is safe: a `TextEncoder` never returns shared memory, but its type does not say so.
 */
export function utf8Bytes(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text) as Uint8Array<ArrayBuffer>;
}

/** Returns a number with its noun, such as `1 key` or `2 keys`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}

/** Returns a text for display, cut after `maxUnits` code units. */
export function shortText(text: string, maxUnits: number): string {
  return text.length > maxUnits ? `${text.slice(0, characterEnd(text, maxUnits))}…` : text;
}

/** Returns a text as a word of a POSIX shell, quoted if necessary. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
