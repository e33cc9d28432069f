/** Finds all strings of a JSON text at once with WebAssembly. See `strings.wat`. */
import { JSON_STRINGS_WASM } from "./strings_wasm.ts";

/** The exports of the module. Addresses are in bytes of its memory. */
interface Finder {
  memory: WebAssembly.Memory;
  find: (length: number) => number;
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

/** Maximum number of bytes of a text. */
export const MAX_BYTES = 1_048_576;
/**
 * Longest text with characters beyond Latin-1, in characters. Encoding 60 KB of Chinese takes 50 µs, which is as long
 * as the careful parser takes for the whole text.
 */
const MAX_NON_LATIN1_LENGTH = 4_096;
const NON_LATIN1 = /[^\0-\xff]/;
/** Number of cached names. */
const CACHED_NAMES = 1024;
/** Maximum number of bytes of a cached name. */
const NAME_BYTES = 32;

/** The last source in UTF-8, followed by zeros. */
export const bytes = new Uint8Array(buffer, input.value, MAX_BYTES + 64);
const inputBytes = bytes.subarray(0, MAX_BYTES);
const copiedBytes = new Uint8Array(buffer, output.value, MAX_BYTES);
const nameBytes = new Uint8Array(buffer, namesStart.value, CACHED_NAMES * NAME_BYTES);

/** The strings of the last source, in order: `STRING_WORDS` numbers for each. */
export const tape = new Int32Array(buffer, tapeStart.value, (input.value - tapeStart.value) / 4);
/**
 * Numbers per string on the tape: the offset of the closing quote; the number of bytes minus the number of code units
 * before it; and how to read the string: a number from 0 up, its end in `readCopied()`, or one of the
 * following constants.
 */
export const STRING_WORDS = 3;
/** The string has escapes that need a parser. */
export const ESCAPED = -1;
/** The string is a name in the cache, or to be added to it. `NAMED` means index 0, `NAMED - 1` index 1, and so on. */
export const NAMED = -2;

/** Cached names, at the indices that the module gives them. */
const names: string[] = new Array(CACHED_NAMES).fill("");
/** Pairs of an index and the cached name that was replaced there since the strings were found. */
const replacedNames: (number | string)[] = [];

/** The decoder's replacement for malformed UTF-8. It may also be a part of the text. */
const REPLACEMENT = "\ufffd";

const encoder = new TextEncoder();
/** Keeps byte order marks: one at the start of a string belongs to the string. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Finds the strings of a source.
 * @returns the length of the source in bytes; `undefined` if a string is malformed or the source is too long
 */
export function findStrings(source: Source): number | undefined {
  let length = source.length;
  if (length > MAX_BYTES) return undefined;
  replacedNames.length = 0;
  if (typeof source === "string") {
    if (length > MAX_NON_LATIN1_LENGTH && NON_LATIN1.test(source)) return undefined;
    // A lone surrogate has no UTF-8: the encoder would replace it.
    if (!source.isWellFormed()) return undefined;
    const { read, written } = encoder.encodeInto(source, inputBytes);
    if (read < length) return undefined;
    length = written;
  } else bytes.set(source);
  return find(length) < 0 ? undefined : length;
}

/** Returns the contents of all strings except names, each with its closing quote; `undefined` if they may not be UTF-8. */
export function readCopied(): string | undefined {
  const copied = textOf(copiedBytes, 0, outputBytes.value);
  return copied.includes(REPLACEMENT) ? undefined : copied;
}

/** Returns whether one of the strings has the escape `\/`, which `writeJson` does not write. */
export function hasSlashes(): boolean {
  return slashes.value !== 0;
}

/** Returns a part of the last source. @throws {SyntaxError} if it may not be UTF-8 */
export function pieceOf(start: number, end: number): string {
  const piece = textOf(bytes, start, end);
  if (piece.includes(REPLACEMENT)) throw new SyntaxError("Cannot tell whether this is UTF-8");
  return piece;
}

function textOf(from: Uint8Array, start: number, end: number): string {
  return start === end ? "" : decoder.decode(from.subarray(start, end));
}

/** Reads the name from `start` to `end`, from the cache if `reading` has its index. @throws {SyntaxError} as `pieceOf` */
export function readName(reading: number, start: number, end: number): string {
  const index = NAMED - reading;
  if (index < CACHED_NAMES) return names[index] ?? "";
  replacedNames.push(index - CACHED_NAMES, names[index - CACHED_NAMES] ?? "");
  return names[index - CACHED_NAMES] = copyText(pieceOf(start, end));
}

/**
 * Restores the names that were replaced since the strings were found. This is needed before a source is read again,
 * because a later name may have replaced a cached name of the source.
 */
export function restoreNames(): void {
  for (let index = replacedNames.length - 2; index >= 0; index -= 2) {
    names[Number(replacedNames[index])] = String(replacedNames[index + 1]);
  }
  replacedNames.length = 0;
}

/** Copies a text, so that it does not keep a longer text in memory. V8 copies short texts and object keys. */
function copyText(text: string): string {
  return text.length < 13 ? text : Object.keys({ [text]: 0 })[0] ?? "";
}

/**
 * Clears the cache of names. This is needed if some of the found names were not read, which the module assumes to be
 * cached.
 */
export function forgetNames(): void {
  nameBytes.fill(0);
  names.fill("");
}
