/** Shared by the JSON parsers: limits, functions that find the ends of tokens, and errors. */
import type { Span } from "../text.ts";
import type { Json } from "./values.ts";
import type { RawSpans } from "./raw_spans.ts";

/** Limits of a parser. */
export interface JsonLimits {
  /** Maximum number of levels of nested arrays and objects. */
  depth: number;
  /** Maximum number of values of any kind in the whole text. */
  nodes: number;
  /** Maximum number of members of one object. */
  keys: number;
  /** Number of outermost levels in whose objects duplicate names are errors; absent: two. */
  unique?: number;
}

/** Limits for texts of clients. */
export const JSON_LIMITS: JsonLimits = { depth: 64, nodes: 200_000, keys: 10_000 };

/** Default of `JsonLimits.unique`. */
export const UNIQUE_LEVELS = 2;

/** A position in a text. Lines and columns are counted from 1. */
export interface SourcePosition {
  line: number;
  column: number;
}

/** The error for text that is not JSON, or that exceeds the limits. */
export class JsonError extends SyntaxError {
  override readonly name = "JsonError";
  /** Offset into the text, in UTF-16 code units, counted from 0. */
  readonly position: number;
  /** The same position as line and column; undefined if the parser did not compute them. */
  readonly where: SourcePosition | undefined;

  constructor(message: string, position: number, where?: SourcePosition) {
    super(message);
    this.position = position;
    this.where = where;
  }
}

/** A parsed JSON text. */
export interface ParsedJson {
  value: Json;
  /** Members of the outermost object, each name once; empty for other values. */
  members: readonly Member[];
  /** The same members with byte offsets; absent if the text was not parsed from UTF-8. */
  utf8Members?: readonly Member[];
  /** Long strings with byte offsets; absent if there are none. */
  rawSpans?: RawSpans | undefined;
  /** True if the value contains raw numbers. */
  hasRaw: boolean;
}

/** A member of an object in JSON text. `start` and `end` are those of its value. */
export interface Member extends Span {
  name: string;
  /** Offset of the comma before the member; for the first member, the offset after the brace. */
  before: number;
}

/** Longest number, in characters. Every double can be written with fewer, and the time to read one is not linear. */
const MAX_NUMBER_LENGTH = 1100;
/** Maximum number of digits of a natural number that is certainly exact in a double. */
const EXACT_DIGITS = 15;

const QUOTE = 0x22, MINUS = 0x2d, DOT = 0x2e, BACKSLASH = 0x5c;

const ZERO = 0x30, NINE = 0x39, LETTER_U = 0x75;

/** Characters that may follow a backslash, except `u`. */
const ESCAPES = new Set(Array.from('"\\/bfnrt', (letter) => letter.charCodeAt(0)));

/** Creates the errors about the structure of a text. */
export const FAULTS = {
  name: (at: number) => new JsonError("Expected a member name in double quotes", at),
  members: ({ keys }: JsonLimits, at: number) => new JsonError(`Expected at most ${keys} members in an object`, at),
  repeated: (name: string, at: number) =>
    new JsonError(`Expected each member once, ${JSON.stringify(name.slice(0, 64))} comes twice`, at),
  colon: (at: number) => new JsonError('Expected ":"', at),
  values: ({ nodes }: JsonLimits, at: number) => new JsonError(`Expected at most ${nodes} values`, at),
  levels: ({ depth }: JsonLimits, at: number) => new JsonError(`Expected at most ${depth} levels of nesting`, at),
  close: ({ isObject }: { isObject: boolean }, at: number) =>
    new JsonError(`Expected "," or "${isObject ? "}" : "]"}"`, at),
  rest: (at: number) => new JsonError("Expected nothing after the value", at),
  quote: (text: string) => new JsonError('Expected a closing "', text.length),
};

/** Returns the first offset from `at` on that is not white space. */
export function skipSpace(text: string, at: number): number {
  while (true) {
    if (!isSpace(text.charCodeAt(at))) return at;
    at++;
  }
}

/** Returns whether a character is white space in JSON. */
export function isSpace(code: number): boolean {
  return code <= 0x20 && (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09);
}

/**
 * Returns the offset of the closing quote of the string whose opening quote is at `open`; -1 if there is none. It is
 * the first quote after an even number of backslashes.
 */
export function closingQuote(text: string, open: number): number {
  for (let quote = text.indexOf('"', open + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let escape = quote;
    while (text.charCodeAt(escape - 1) === BACKSLASH) escape--;
    if ((quote - escape) % 2 === 0) return quote;
    // Skip runs of escaped quotes: 4 million of them take 17 instead of 57 ms.
    while (text.charCodeAt(quote + 1) === BACKSLASH && text.charCodeAt(quote + 2) === QUOTE) quote += 2;
  }
  return -1;
}

/** Returns the end of a number. @throws {JsonError} if it is no number, or too long */
export function numberEnd(text: string, start: number): number {
  let at = start;
  const limit = start + MAX_NUMBER_LENGTH;
  if (text.charCodeAt(at) === MINUS) at++;
  at = text.charCodeAt(at) === ZERO ? at + 1 : digitsEnd(text, at, limit);
  if (text.charCodeAt(at) === DOT) at = digitsEnd(text, at + 1, limit);
  const exponent = text[at];
  if (exponent === "e" || exponent === "E") {
    const sign = text[at + 1];
    at = digitsEnd(text, sign === "+" || sign === "-" ? at + 2 : at + 1, limit);
  }
  return at;
}

function digitsEnd(text: string, start: number, limit: number): number {
  let at = start;
  while (true) {
    const code = text.charCodeAt(at);
    if (!(code >= ZERO && code <= NINE)) break;
    // A text may consist of digits only, so reading stops at the limit.
    if (++at > limit) {
      throw new JsonError(`Expected a number of at most ${MAX_NUMBER_LENGTH} characters`, limit - MAX_NUMBER_LENGTH);
    }
  }
  if (at === start) throw new JsonError("Expected a digit", at);
  return at;
}

/** Returns whether a double would be written differently from the text. Short natural numbers are known to be exact. */
export function isLossy(source: string): boolean {
  if (source.length <= EXACT_DIGITS && isNatural(source)) return false;
  return String(Number(source)) !== source;
}

function isNatural(source: string): boolean {
  for (let at = 0; at < source.length; at++) {
    const code = source.charCodeAt(at);
    if (!(code >= ZERO && code <= NINE)) return false;
  }
  return true;
}

/** Returns the end of `true`, `false` or `null`. @throws {JsonError} if it is none of them */
export function literalEnd(text: string, at: number): number {
  for (const word of ["true", "false", "null"]) {
    if (text.startsWith(word, at)) return at + word.length;
  }
  throw new JsonError("Expected a value", at);
}

/**
 * Finds the first fault inside a string, between `at` (which must not be within an escape) and `end`. Without a fault
 * it returns the offset of the closing quote, or an offset at or after `end`.
 */
export function findBadPart(text: string, at: number, end: number): JsonError | number {
  for (; at < end && text.charCodeAt(at) !== QUOTE; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20) return new JsonError("Expected control characters in strings to be escaped", at);
    if (code !== BACKSLASH) continue;
    at++;
    const escaped = text.charCodeAt(at);
    if (escaped === LETTER_U) {
      for (let digit = at + 1; digit <= at + 4; digit++) {
        if (!isHexDigit(text.charCodeAt(digit))) return new JsonError("Expected four hexadecimal digits", digit);
      }
      at += 4;
    } else if (at < text.length && !ESCAPES.has(escaped)) {
      return new JsonError('Expected an escape: one of " \\ / b f n r t u', at);
    }
  }
  return at;
}

function isHexDigit(code: number): boolean {
  return (code >= ZERO && code <= NINE) || (code >= 0x41 && code <= 0x46) || (code >= 0x61 && code <= 0x66);
}
