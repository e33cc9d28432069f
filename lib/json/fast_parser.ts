/**
 * The fast parser, for valid texts of limited length. It returns `undefined` for all other texts, which the careful
 * parser then reads.
 */
import { isLossy, type JsonLimits, type Member, numberEnd, type ParsedJson, UNIQUE_LEVELS } from "./lexer.ts";
import {
  bytes,
  ESCAPED,
  findStrings,
  forgetNames,
  hasSlashes,
  pieceOf,
  readCopied,
  readName,
  type Source,
  STRING_WORDS,
  tape,
} from "./strings.ts";
import { type Json, type JsonObject, putMember, rawNumber } from "./values.ts";
import { RAW_SPAN_BYTES, type RawSpans } from "./raw_spans.ts";

const QUOTE = 0x22, MINUS = 0x2d, COMMA = 0x2c, COLON = 0x3a;
const OPEN_ARRAY = 0x5b, CLOSE_ARRAY = 0x5d, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d;
const ZERO = 0x30, NINE = 0x39, SPACE = 0x20, PLUS = 0x2b, DOT = 0x2e;
const LETTER_E = 0x65, CAPITAL_E = 0x45, LETTER_N = 0x6e, LETTER_T = 0x74;

/** `true`, `false` and `null`, by their first letters. */
const WORDS: ReadonlyMap<number, Uint8Array> = new Map(
  ["true", "false", "null"].map((word) => [word.charCodeAt(0), new TextEncoder().encode(word)]),
);

/** Maximum number of digits of a number that is computed here. Such numbers are exact in a double. */
const MAX_DIGITS = 15;

/** The array or object around the current one; both are undefined around the outermost value. */
interface Level {
  list: Json[] | undefined;
  object: JsonObject | undefined;
  /** Number of members so far. */
  keys: number;
}

/**
 * Parses a text; `undefined` if it is malformed, exceeds the limits, or has a form that only the careful parser reads.
 * Strings of 13 characters and more are slices of one text with all strings: a reference to one of them keeps it in
 * memory.
 */
export function parseFast(source: Source, limits: JsonLimits): ParsedJson | undefined {
  return parseFound(findStrings(source), limits);
}

/**
 * Parses the text for which `findStrings` was just called, as `parseFast`.
 * @param length the result of `findStrings`
 */
export function parseFound(length: number | undefined, limits: JsonLimits): ParsedJson | undefined {
  let parsed: ParsedJson | undefined;
  try {
    const copied = length === undefined ? undefined : readCopied();
    if (length !== undefined && copied !== undefined) {
      parsed = parseStructure(length, copied, limits);
    }
  } catch (error) {
    // A number, word or escape is malformed.
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (parsed === undefined) forgetNames();
  return parsed;
}

/** Parses the text whose strings were found last. */
// deno-lint-ignore sluice/function-length -- one loop over the text, with its state in local variables
function parseStructure(length: number, copied: string, limits: JsonLimits): ParsedJson | undefined {
  // V8 looks up imports at each use, but not locals: this saves 27,000 instructions for 11 KB of tools.
  const codes = bytes;
  const words = tape;
  const { unique = UNIQUE_LEVELS } = limits;
  const levels: Level[] = [];
  /** The top-level members, with byte offsets. */
  const members: Member[] = [];
  /** Values of `extra` at the start and at the end of each member's value. */
  const extras: number[] = [];
  let rawSpans: RawSpans | undefined;
  let member: Member | undefined;
  /** The innermost open array, or the innermost open object; both are undefined outside of the outermost value. */
  let list: Json[] | undefined;
  let object: JsonObject | undefined;
  /** Number of members of that object so far. */
  let keys = 0;
  /** Number of open arrays and objects. */
  let depth = 0;
  let root: Json = null;
  let nodes = 0;
  let hasRaw = false;
  let before = 0;
  /** Index of the next string's words on the tape. */
  let next = 0;
  /** Start of the next string in the copied text. */
  let copiedAt = 0;
  /** Bytes minus code units before `at`, which counts bytes. */
  let extra = 0;
  let at = skipSpace(codes, 0);

  /** The member name of the next value; `undefined` in an object if a name comes next. */
  let name: string | undefined;
  while (true) {
    const start = at;
    let string: string | undefined;
    if (codes[at] === QUOTE) {
      at = words[next] ?? 0;
      extra = words[next + 1] ?? 0;
      const reading = words[next + 2] ?? 0;
      next += STRING_WORDS;
      if (reading >= 0) {
        string = copied.slice(copiedAt, reading);
        copiedAt = reading + 1;
      } else if (reading === ESCAPED) string = JSON.parse(pieceOf(start, at + 1)) as string;
      else string = readName(reading, start + 1, at);
      at++;
    }
    if (object !== undefined && name === undefined) {
      if (string === undefined || ++keys > limits.keys) return undefined;
      name = string;
      if (depth <= unique && Object.hasOwn(object, name)) return undefined;
      if (depth === 1) members.push(member = { name, before, start: 0, end: 0 });
      at = skipSpace(codes, at);
      if (codes[at] !== COLON) return undefined;
      at = skipSpace(codes, at + 1);
      if (depth === 1 && member !== undefined) {
        member.start = at;
        extras.push(extra);
      }
      continue;
    }

    if (++nodes > limits.nodes) return undefined;
    const code = codes[start] ?? 0;
    let value: Json;
    let openedList: Json[] | undefined;
    let openedObject: JsonObject | undefined;
    if (string !== undefined) {
      // A string with escapes has no copy.
      if (at - start >= RAW_SPAN_BYTES && words[next - 1] !== ESCAPED) {
        rawSpans ??= { values: [], offsets: [], bytes: 0 };
        rawSpans.values.push(string);
        rawSpans.offsets.push(start, at);
        rawSpans.bytes += at - start;
      }
      value = string;
    } else if (code === OPEN_OBJECT) {
      value = openedObject = {};
    } else if (code === OPEN_ARRAY) {
      value = openedList = [];
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      let number = 0;
      let end = at;
      let digit = code;
      for (; digit >= ZERO && digit <= NINE && end - at < MAX_DIGITS; digit = codes[++end] ?? 0) {
        number = number * 10 + digit - ZERO;
      }
      const isEnd = digit === COMMA || digit === CLOSE_OBJECT || digit === CLOSE_ARRAY;
      // A number of several digits must not begin with zero.
      if (isEnd && (code === ZERO ? end === at + 1 : end > at)) value = number;
      else {
        const source = pieceOf(at, numberBytesEnd(codes, at));
        if (numberEnd(source, 0) < source.length) return undefined;
        const isRaw = isLossy(source);
        hasRaw ||= isRaw;
        value = isRaw ? rawNumber(source) : Number(source);
        end = at + source.length;
      }
      at = end;
    } else {
      const end = wordEnd(codes, at);
      if (end === at) return undefined;
      value = code === LETTER_N ? null : code === LETTER_T;
      at = end;
    }
    if (object !== undefined && name !== undefined) putMember(object, name, value);
    else if (list !== undefined) list.push(value);
    else root = value;
    name = undefined;
    if (openedObject !== undefined || openedList !== undefined) {
      if (depth === limits.depth) return undefined;
      levels.push({ list, object, keys });
      list = openedList;
      object = openedObject;
      keys = 0;
      depth++;
      before = at + 1;
      at = skipSpace(codes, at + 1);
      if (codes[at] !== (list === undefined ? CLOSE_OBJECT : CLOSE_ARRAY)) continue;
    }

    while (true) {
      if (depth === 1 && member !== undefined) {
        member.end = at;
        extras.push(extra);
      }
      at = skipSpace(codes, at);
      if (depth === 0) {
        if (at < length) return undefined;
        return {
          value: root,
          members: extra === 0 ? members : inText(members, extras),
          utf8Members: members,
          rawSpans: rawSpans !== undefined && hasSlashes() ? undefined : rawSpans,
          hasRaw,
        };
      }
      const mark = codes[at];
      if (mark === COMMA) {
        before = at;
        at = skipSpace(codes, at + 1);
        break;
      }
      if (mark !== (list === undefined ? CLOSE_OBJECT : CLOSE_ARRAY)) return undefined;
      const outer = levels.pop();
      list = outer?.list;
      object = outer?.object;
      keys = outer?.keys ?? 0;
      depth--;
      at++;
    }
  }
}

/** Converts byte offsets to offsets in the text. Between a member and the comma after it there is only white space. */
function inText(members: readonly Member[], extras: readonly number[]): Member[] {
  return members.map(({ name, before, start, end }, index) => ({
    name,
    before: before - (extras[2 * index - 1] ?? 0),
    start: start - (extras[2 * index] ?? 0),
    end: end - (extras[2 * index + 1] ?? 0),
  }));
}

/** Returns the end of the bytes that may belong to a number. */
export function numberBytesEnd(codes: Uint8Array, start: number): number {
  let at = start;
  while (true) {
    const code = codes[at] ?? 0;
    const isOfNumber = (code >= ZERO && code <= NINE) || code === MINUS || code === PLUS || code === DOT ||
      code === LETTER_E || code === CAPITAL_E;
    if (!isOfNumber) return at;
    at++;
  }
}

/** Returns the end of `true`, `false` or `null`; the same offset if none of them begins there. */
export function wordEnd(codes: Uint8Array, at: number): number {
  const word = WORDS.get(codes[at] ?? 0);
  return word !== undefined && word.every((code, index) => codes[at + index] === code) ? at + word.length : at;
}

/** Returns the first offset from `at` on that is not white space. */
export function skipSpace(codes: Uint8Array, at: number): number {
  while (true) {
    const code = codes[at] ?? 0;
    if (code > SPACE || (code !== SPACE && code !== 0x0a && code !== 0x0d && code !== 0x09)) return at;
    at++;
  }
}
