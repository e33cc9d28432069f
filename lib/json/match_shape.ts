/** Checks whether JSON values in UTF-8 match a shape, without creating the values. See `scan.ts`. */
import { numberBytesEnd, skipSpace, wordEnd } from "./fast_parser.ts";
import { type JsonLimits, numberEnd } from "./lexer.ts";
import {
  IMAGE_TYPES,
  type ListShape,
  type MemberShape,
  type ObjectShape,
  SEAL_PREFIX,
  type Shape,
  type TextShape,
} from "./shape.ts";
import { bytes, ESCAPED, NAMED, pieceOf, readName, STRING_WORDS, tape } from "./strings.ts";

const QUOTE = 0x22, MINUS = 0x2d, COMMA = 0x2c, COLON = 0x3a;
const OPEN_ARRAY = 0x5b, CLOSE_ARRAY = 0x5d, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d;
const ZERO = 0x30, NINE = 0x39;
const LETTER_F = 0x66, LETTER_N = 0x6e, LETTER_T = 0x74;

const BACKSLASH = 0x5c;

const encoder = new TextEncoder();
const SEAL_PREFIX_BYTES = encoder.encode(SEAL_PREFIX);
const DATA_URLS = IMAGE_TYPES.map((type) => encoder.encode(`data:${type};base64,`));

/** For each byte, 1 if it is not a base64 digit, otherwise 0. */
const IS_NOT_BASE64 = new Uint8Array(256).fill(1);
for (const digit of encoder.encode("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")) {
  IS_NOT_BASE64[digit] = 0;
}
const PADDING = 0x3d;

/** The position of the scan, and the counts of the current body. Only one scan runs at a time. */
export const scanState = {
  /** Offset of the next value. */
  cursor: 0,
  /** Index of the next string's words on the tape. */
  nextWord: 0,
  /** Number of values so far. */
  nodes: 0,
  /** These five have the meaning of the same members of `ContentSizes`. */
  textBytes: 0,
  texts: 0,
  sealedBytes: 0,
  sealed: 0,
  rare: 0,
  /** Number of prompt-cache marks. */
  marks: 0,
  /** Number of entries of the last top-level list. */
  entries: 0,
  /** Start and end offsets of the base64 of each image. */
  images: [] as number[],
};

/** Resets the state for another body. */
export function resetScanState(): void {
  scanState.nextWord = 0;
  scanState.nodes =
    scanState.textBytes =
    scanState.texts =
    scanState.sealedBytes =
    scanState.sealed =
    scanState.marks =
    scanState.rare =
      0;
  if (scanState.images.length > 0) scanState.images = [];
}

/** Shapes of the containers around the innermost open container, by depth. */
const outerShapes: (ListShape | ObjectShape | undefined)[] = [];
/** Members whose values are the open containers, by depth. */
const ownerMembers: (MemberShape | undefined)[] = [];
/**
 * Five numbers per outer container: 1 for a list, bits of its members, number of entries, start, index of its first
 * free name.
 */
const outerStates = new Int32Array(5 * 1024);

/** Names without a shape in all open objects, those of the innermost object last. */
const freeNames: string[] = [];
/** Maximum number of names without a shape in one object. They are compared one by one. */
const MAX_FREE_NAMES = 256;

/**
 * Checks the value at the cursor. Moves the cursor to the value's end. For a list, it also sets `scanState.entries`.
 * @param root the required shape; undefined for any value
 * @returns false if the value has another shape, or is malformed
 */
// deno-lint-ignore sluice/function-length -- one loop over the text, with its state in local variables
export function matchShape(root: Shape | undefined, limits: JsonLimits): boolean {
  const codes = bytes;
  const words = tape;
  let at = scanState.cursor;
  let next = scanState.nextWord;
  let { nodes } = scanState;
  let depth = 0;
  let shape = root;
  let member: MemberShape | undefined;
  /** The next variables describe the innermost open container: whether it is a list. */
  let isList = false;
  let containerShape: ListShape | ObjectShape | undefined;
  /** Bits of its members so far. */
  let bits = 0;
  /** Number of its entries or members so far. */
  let count = 0;
  /** Offset of its opening bracket. */
  let opened = 0;
  /** Start and end of its part of `freeNames`. */
  let firstName = 0;
  let endName = 0;
  scanState.entries = 0;

  while (true) {
    nodes++;
    const code = codes[at] ?? 0;
    let bit = member === undefined ? 0 : member.bit;
    let isOpen = false;
    if (code === QUOTE) {
      const close = words[next] ?? 0;
      const reading = words[next + 2] ?? 0;
      next += STRING_WORDS;
      if (reading <= NAMED || (reading === ESCAPED && stringAt(at, close + 1) === undefined)) return false;
      if (shape !== undefined) {
        if (shape.text === undefined) return false;
        const word = matchText(shape.text, at + 1, close);
        if (word < 0) return false;
        if (member !== undefined && member.wordBits.length > 0) bit = member.wordBits[word] ?? 0;
      }
      at = close + 1;
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      if (++depth >= limits.depth) return false;
      const isArray = code === OPEN_ARRAY;
      const inner = isArray ? shape?.list : shape?.object;
      if (shape !== undefined && inner === undefined) return false;
      // Objects with duplicate members are left to the parsers.
      if (member !== undefined) {
        if ((bits & member.bits) !== 0) return false;
        bits |= isArray ? member.listBit : bit;
      }
      const slot = depth * 5;
      outerShapes[depth] = containerShape;
      ownerMembers[depth] = member;
      outerStates[slot] = isList ? 1 : 0;
      outerStates[slot + 1] = bits;
      outerStates[slot + 2] = count;
      outerStates[slot + 3] = opened;
      outerStates[slot + 4] = firstName;
      firstName = endName;
      isList = isArray;
      containerShape = inner;
      bits = count = 0;
      opened = at;
      at = skipSpace(codes, at + 1);
      isOpen = codes[at] !== (isArray ? CLOSE_ARRAY : CLOSE_OBJECT);
    } else {
      const end = scalarEnd(codes, at, code);
      if (end === at) return false;
      if (shape !== undefined) {
        if (code === LETTER_N) {
          if (!shape.isNullable) return false;
          if (member !== undefined) bit = member.nullBit;
        } else if (!shape.isBoolean || (code !== LETTER_T && code !== LETTER_F)) return false;
      }
      at = end;
    }

    if (!isOpen) {
      // A value has ended, or an empty container is open.
      let isClosed = code !== OPEN_OBJECT && code !== OPEN_ARRAY;
      if (isClosed && member !== undefined) {
        if ((bits & member.bits) !== 0) return false;
        bits |= bit;
      }
      while (true) {
        if (isClosed) {
          if (depth === 0) {
            scanState.cursor = at;
            scanState.nextWord = next;
            scanState.nodes = nodes;
            return true;
          }
          at = skipSpace(codes, at);
          if (isList) count++;
          if (codes[at] === COMMA) {
            at = skipSpace(codes, at + 1);
            break;
          }
          if (codes[at] !== (isList ? CLOSE_ARRAY : CLOSE_OBJECT)) return false;
        }
        isClosed = true;
        at++;
        let kinds = 0;
        if (containerShape !== undefined) {
          if (isList) {
            const { min, max } = containerShape as ListShape;
            if (count < min || count > max) return false;
            if (depth === 1) scanState.entries = count;
            const owner = ownerMembers[depth];
            if (owner !== undefined) kinds = bits << owner.kindShift;
          } else {
            kinds = kindOf(containerShape as ObjectShape, bits, at - opened);
            if (kinds < 0) return false;
          }
        }
        const slot = depth * 5;
        containerShape = outerShapes[depth];
        isList = outerStates[slot] === 1;
        bits = (outerStates[slot + 1] ?? 0) | kinds;
        count = outerStates[slot + 2] ?? 0;
        opened = outerStates[slot + 3] ?? 0;
        endName = firstName;
        firstName = outerStates[slot + 4] ?? 0;
        depth--;
      }
    }

    if (isList) {
      member = undefined;
      shape = containerShape === undefined ? undefined : (containerShape as ListShape).items;
      continue;
    }
    if (codes[at] !== QUOTE) return false;
    const close = words[next] ?? 0;
    const reading = words[next + 2] ?? 0;
    next += STRING_WORDS;
    if (++count > limits.keys) return false;
    const object = containerShape as ObjectShape | undefined;
    const isKnown = object !== undefined && object.members !== undefined;
    if (isKnown && reading >= ESCAPED) return false;
    const name = reading < ESCAPED ? readName(reading, at + 1, close) : stringAt(at, close + 1);
    if (name === undefined) return false;
    member = isKnown ? object.members.get(name) : undefined;
    shape = member === undefined ? undefined : member.shape;
    if (member === undefined) {
      if (isKnown && !object.isOpen || endName - firstName === MAX_FREE_NAMES) return false;
      for (let index = firstName; index < endName; index++) if (freeNames[index] === name) return false;
      freeNames[endName++] = name;
    }
    at = skipSpace(codes, close + 1);
    if (codes[at] !== COLON) return false;
    at = skipSpace(codes, at + 1);
  }
}

/** Returns the index of the matching word, or 0 if any word is allowed; -1 if the string has another shape. */
function matchText(
  { words, min, max, isName, isRead, isSealed, image }: TextShape,
  start: number,
  end: number,
): number {
  const length = end - start;
  if (length < min || length > max) return -1;
  if (isRead) {
    scanState.textBytes += length;
    scanState.texts++;
  }
  if (isSealed) {
    if (isAt(SEAL_PREFIX_BYTES, start)) return -1;
    // Without a bound, the search could read up to a megabyte for each text.
    if (bytes.subarray(start, end).includes(BACKSLASH)) return -1;
    if (length > 0) scanState.sealed++;
    scanState.sealedBytes += length;
  }
  if (image !== undefined) {
    const base64Start = image === "url" ? afterDataUrl(start) : start;
    if (!isBase64(base64Start, end)) return -1;
    scanState.images.push(base64Start, end);
  }
  if (isName && !hasNameBytes(start, end)) return -1;
  if (words === undefined) return 0;
  for (let index = 0; index < words.length; index++) {
    const word = words[index];
    if (word !== undefined && word.length === length && isAt(word, start)) return index;
  }
  return -1;
}

/** Returns the start of the base64 in a data URL with an image; `Infinity` for any other text. */
function afterDataUrl(start: number): number {
  for (const prefix of DATA_URLS) if (isAt(prefix, start)) return start + prefix.length;
  return Infinity;
}

/** Returns whether bytes are padded base64 of at least one byte, without white space and escapes. */
function isBase64(start: number, end: number): boolean {
  if (!(start < end) || (end - start) % 4 !== 0) return false;
  let padding = 0;
  while (padding < 2 && bytes[end - 1 - padding] === PADDING) padding++;
  let invalid = 0;
  for (let at = start; at < end - padding; at++) invalid |= IS_NOT_BASE64[bytes[at] ?? 0] ?? 1;
  return invalid === 0;
}

function isAt(word: Uint8Array, start: number): boolean {
  for (let index = 0; index < word.length; index++) if (bytes[start + index] !== word[index]) return false;
  return true;
}

function hasNameBytes(start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const code = bytes[at] ?? 0;
    const letter = code | 0x20;
    const isPart = (letter >= 0x61 && letter <= 0x7a) || (code >= ZERO && code <= COLON) || code === 0x5f ||
      code === MINUS || code === 0x2e;
    if (!isPart) return false;
  }
  return true;
}

/**
 * Returns the kind of the first variant that has these members; 0 if it has no kind, -1 if there is no such variant.
 */
function kindOf({ variants, isRead, isMark }: ObjectShape, bits: number, length: number): number {
  if (isRead) {
    scanState.textBytes += length;
    scanState.texts++;
  }
  if (isMark) scanState.marks++;
  for (let index = 0; index < variants.length; index++) {
    const variant = variants[index];
    if (
      variant !== undefined && (bits & variant.needs) === variant.needs && (bits & ~(variant.needs | variant.may)) === 0
    ) {
      if (variant.isRare) scanState.rare++;
      return variant.kind;
    }
  }
  return -1;
}

/** Returns the string between two quotes; undefined if an escape is malformed. */
function stringAt(start: number, end: number): string | undefined {
  try {
    return JSON.parse(pieceOf(start, end));
  } catch {
    return undefined;
  }
}

/** Returns the end of a number, `true`, `false` or `null`; the same offset if there is none. */
function scalarEnd(codes: Uint8Array, start: number, code: number): number {
  if (code !== MINUS && (code < ZERO || code > NINE)) return wordEnd(codes, start);
  let at = start;
  for (let digit = code; digit >= ZERO && digit <= NINE; digit = codes[at] ?? 0) at++;
  const next = codes[at] ?? 0;
  if (
    at > start && (code !== ZERO || at === start + 1) &&
    (next === COMMA || next === CLOSE_OBJECT || next === CLOSE_ARRAY)
  ) {
    return at;
  }
  return otherNumberEnd(codes, start);
}

/** Returns the end of a number in a rarer form, such as one with a fraction; `start` if it is malformed. */
function otherNumberEnd(codes: Uint8Array, start: number): number {
  const source = pieceOf(start, numberBytesEnd(codes, start));
  try {
    return numberEnd(source, 0) === source.length ? start + source.length : start;
  } catch {
    return start;
  }
}
