/** The strings of a JSON text, all found at once by WebAssembly; see `json_strings.wat`. */
import { JSON_STRINGS_WASM } from "./strings_wasm.ts";

/** Exports of the module. Offsets are bytes in its memory. */
interface Finder {
  memory: WebAssembly.Memory;
  find: (length: number, all: number) => number;
  input: WebAssembly.Global;
  output: WebAssembly.Global;
  outputBytes: WebAssembly.Global;
  slashes: WebAssembly.Global;
  tape: WebAssembly.Global;
  names: WebAssembly.Global;
}

const wasm = Uint8Array.from(atob(JSON_STRINGS_WASM), (char) => char.charCodeAt(0));
const finder = new WebAssembly.Instance(new WebAssembly.Module(wasm)).exports as unknown as Finder;
const { memory: { buffer }, find, input, output, outputBytes, slashes, tape: tapeStart, names: namesStart } = finder;

/** A text, or its UTF-8 without a byte order mark, possibly malformed. */
export type Source = string | Uint8Array;

/** Bytes that a text may have. */
export const MOST_BYTES = 1_048_576;
/**
 * Characters of a text that is encoded here though it is not Latin: 60 KB of Chinese take 50 µs, and are read carefully in
 * the same time.
 */
const MOST_FOREIGN = 4_096;
const FOREIGN = /[^\0-\xff]/;
/** Names that are kept. */
const NAMES = 1024;
const NAME_BYTES = 32;

/** The text that was given last, in UTF-8, with zeros behind it. */
export const bytes = new Uint8Array(buffer, input.value, MOST_BYTES + 64);
const room = bytes.subarray(0, MOST_BYTES);
const said = new Uint8Array(buffer, output.value, MOST_BYTES);
const nameBytes = new Uint8Array(buffer, namesStart.value, NAMES * NAME_BYTES);

/** Facts about its strings in order: `STRING_WORDS` numbers for each. */
export const tape = new Int32Array(buffer, tapeStart.value, (input.value - tapeStart.value) / 4);
/** The offset of the closing quote; how many more bytes than code units are before that; and how to read the string. */
export const STRING_WORDS = 3;
/** How to read it, if not as the part of what was copied that ends there, before its quote: as it stands. */
export const PLAIN = -1;
/** With a parser. */
export const ESCAPED = -2;
/** It is a name of those that were seen: of smaller numbers the first is that of place 0. */
export const NAMED = -3;

/** True if the last source was a text. */
let isText = false;

/** Names that were seen, at the places that the module has for them. */
const names: string[] = new Array(NAMES).fill("");

/** The decoder's replacement of malformed UTF-8. A sender may write it, too. */
const REPLACED = "\ufffd";

const encoder = new TextEncoder();
/** A mark of byte order at its start belongs to a string. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Finds the strings of a text. Returns its bytes; `undefined` where there is something wrong with a string, or too much. */
export function findStrings(source: Source): number | undefined {
  let length = source.length;
  if (length > MOST_BYTES) return undefined;
  isText = typeof source === "string";
  if (typeof source === "string") {
    if (length > MOST_FOREIGN && FOREIGN.test(source)) return undefined;
    // Half of a character has no bytes: another one would stand in its place.
    if (!source.isWellFormed()) return undefined;
    const { read, written } = encoder.encodeInto(source, room);
    if (read < length) return undefined;
    length = written;
  } else bytes.set(source);
  return find(length, isText ? 0 : 1) < 0 ? undefined : length;
}

/**
 * What those strings say that were copied, each with its closing quote: of a text those with escapes, of bytes all but names.
 * `undefined` where it is not UTF-8, or may not be.
 */
export function readCopied(): string | undefined {
  const copied = textOf(said, 0, outputBytes.value);
  return !isText && copied.includes(REPLACED) ? undefined : copied;
}

/** True if one of the strings has the escape `\/`, which `writeJson` does not write. */
export function hasSlashes(): boolean {
  return slashes.value !== 0;
}

/** A piece of the text that was given last. @throws {SyntaxError} of bytes, where it is not UTF-8, or may not be */
export function pieceOf(start: number, end: number): string {
  const piece = textOf(bytes, start, end);
  if (!isText && piece.includes(REPLACED)) throw new SyntaxError("Cannot tell whether this is UTF-8");
  return piece;
}

function textOf(from: Uint8Array, start: number, end: number): string {
  return start === end ? "" : decoder.decode(from.subarray(start, end));
}

/** A name, as `how` to read it says, that stands from `start` to `end`. @throws {SyntaxError} as `pieceOf` */
export function readName(how: number, start: number, end: number): string {
  const place = NAMED - how;
  if (place < NAMES) return names[place] ?? "";
  return names[place - NAMES] = ownText(pieceOf(start, end));
}

/** A copy of a text that does not keep a longer text in memory: V8 copies short texts and object keys. */
function ownText(text: string): string {
  return text.length < 13 ? text : Object.keys({ [text]: 0 })[0] ?? "";
}

/** To be called where names may have been found and not been read. */
export function forgetNames(): void {
  nameBytes.fill(0);
  names.fill("");
}
