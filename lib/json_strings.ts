/** The strings of a JSON text, all found at once by WebAssembly; see `json_strings.wat`. */
import { JSON_STRINGS_WASM } from "./json_strings_wasm.ts";

/** What the module has. Offsets are in its memory, in bytes. */
interface Finder {
  memory: WebAssembly.Memory;
  find: (length: number) => number;
  input: WebAssembly.Global;
  output: WebAssembly.Global;
  outputBytes: WebAssembly.Global;
  tape: WebAssembly.Global;
  names: WebAssembly.Global;
}

const wasm = Uint8Array.from(atob(JSON_STRINGS_WASM), (char) => char.charCodeAt(0));
const finder = new WebAssembly.Instance(new WebAssembly.Module(wasm)).exports as unknown as Finder;
const { memory: { buffer }, find, input, output, outputBytes, tape: tapeStart, names: namesStart } = finder;

/** A text, and the same in UTF-8 where that is at hand: without a mark of byte order, and without a fault. */
export interface Source {
  text: string;
  utf8?: Uint8Array | undefined;
}

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

/** What is known of its strings, in their order: `STRING_WORDS` of each. */
export const tape = new Int32Array(buffer, tapeStart.value, (input.value - tapeStart.value) / 4);
/** The offset of the closing quote; how many more bytes than code units are before that; and how to read the string. */
export const STRING_WORDS = 3;
/** How to read it, if not as the part of the decoded text that ends there: as it stands. */
export const PLAIN = -1;
/** With a parser. */
export const ESCAPED = -2;
/** It is a name of those that were seen: of smaller numbers the first is that of place 0. */
const NAMED = -3;

/** Names that were seen, at the places that the module has for them. */
const names: string[] = new Array(NAMES).fill("");

const encoder = new TextEncoder();
/** A mark of byte order at its start belongs to a string. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Finds the strings of a text. Returns what those say that have escapes, one behind the other; `undefined` where there is
 * something wrong with a string, or too much.
 */
export function findStrings({ text, utf8 }: Source): string | undefined {
  if (text.length > MOST_BYTES) return undefined;
  let length = utf8?.length ?? 0;
  if (utf8 === undefined) {
    if (text.length > MOST_FOREIGN && FOREIGN.test(text)) return undefined;
    // Half of a character has no bytes: another one would stand in its place.
    if (!text.isWellFormed()) return undefined;
    const { read, written } = encoder.encodeInto(text, room);
    if (read < text.length) return undefined;
    length = written;
  } else {
    if (length > MOST_BYTES) return undefined;
    bytes.set(utf8);
  }
  if (find(length) < 0) return undefined;
  const saidBytes = outputBytes.value;
  if (saidBytes === 0) return "";
  return decoder.decode(said.subarray(0, saidBytes));
}

/** A name, as `how` to read it says, that is the text from `start` to `end`. */
export function readName(text: string, { how, start, end }: { how: number; start: number; end: number }): string {
  const place = NAMED - how;
  if (place < NAMES) return names[place] ?? "";
  const name = ownText(text.slice(start, end));
  names[place - NAMES] = name;
  return name;
}

/** The same text, and not as a part of another one that it would keep: a short one is none, and a key becomes none. */
function ownText(text: string): string {
  return text.length < 13 ? text : Object.keys({ [text]: 0 })[0] ?? "";
}

/** To be called where names may have been found and not been read. */
export function forgetNames(): void {
  nameBytes.fill(0);
  names.fill("");
}
