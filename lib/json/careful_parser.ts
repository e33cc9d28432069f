/**
 * The parser for texts that are long or invalid. It reads the same texts as the fast parser, but in steps for
 * `runSliced`, and it reports the first fault.
 */
import {
  FAULTS,
  findBadPart,
  isLossy,
  isSpace,
  type JsonError,
  type JsonLimits,
  literalEnd,
  type Member,
  numberEnd,
  type ParsedJson,
  UNIQUE_LEVELS,
} from "./lexer.ts";
import { type Json, type JsonObject, putMember, rawNumber } from "./values.ts";

/** Maximum number of characters of a step, which takes less than a millisecond. */
const STEP_CHARS = 32_768;
/** Maximum number of values of a step. */
const STEP_VALUES = 512;

const QUOTE = 0x22, MINUS = 0x2d, COMMA = 0x2c, COLON = 0x3a, BACKSLASH = 0x5c, LETTER_U = 0x75;
const OPEN_ARRAY = 0x5b, CLOSE_ARRAY = 0x5d, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d;
const ZERO = 0x30, NINE = 0x39;

/** Work that can be interrupted where it yields. */
type Steps<T> = Generator<void, T>;

/** An array or an object that is open. */
interface Level {
  isObject: boolean;
  holder: Json[] | JsonObject;
  /** Number of members so far. */
  keys: number;
}

/** Parses in steps. @throws {JsonError} at the first fault */
// deno-lint-ignore sluice/function-length -- one loop over the text, with its state in local variables
export function* parseSteps(text: string, limits: JsonLimits): Steps<ParsedJson> {
  const { unique = UNIQUE_LEVELS } = limits;
  const levels: Level[] = [];
  const members: Member[] = [];
  let level: Level | undefined;
  let member: Member | undefined;
  let root: Json = null;
  let name = "";
  let nodes = 0;
  let lossy = false;
  let before = 0;
  let pause = STEP_CHARS;
  let at = yield* spaceEnd(text, 0);

  while (true) {
    if (at > pause || nodes % STEP_VALUES === 0) {
      yield;
      pause = at + STEP_CHARS;
    }
    if (level !== undefined && level.isObject) {
      const open = at;
      if (text.charCodeAt(open) !== QUOTE) throw FAULTS.name(open);
      at = quickEnd(text, open) || (yield* stringEnd(text, open));
      if (++level.keys > limits.keys) throw FAULTS.members(limits, open);
      name = at - open <= STEP_CHARS ? readShort(text, open, at) : yield* readString(text, open, at);
      if (levels.length <= unique && Object.hasOwn(level.holder, name)) throw FAULTS.repeated(name, open);
      if (levels.length === 1) members.push(member = { name, before, start: 0, end: 0 });
      at = yield* spaceEnd(text, at);
      if (text.charCodeAt(at) !== COLON) throw FAULTS.colon(at);
      at = yield* spaceEnd(text, at + 1);
      if (levels.length === 1 && member !== undefined) member.start = at;
    }

    // A value starts here.
    if (++nodes > limits.nodes) throw FAULTS.values(limits, at);
    const start = at;
    const code = text.charCodeAt(at);
    let value: Json;
    let newLevel: Level | undefined;
    if (code === QUOTE) {
      at = quickEnd(text, start) || (yield* stringEnd(text, start));
      value = at - start <= STEP_CHARS ? readShort(text, start, at) : yield* readString(text, start, at);
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      if (levels.length === limits.depth) throw FAULTS.levels(limits, at);
      const isObject = code === OPEN_OBJECT;
      const holder: Json[] | JsonObject = isObject ? {} : [];
      newLevel = { isObject, holder, keys: 0 };
      value = holder;
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      at = numberEnd(text, start);
      const source = text.slice(start, at);
      const isRaw = isLossy(source);
      lossy = isRaw || lossy;
      value = isRaw ? rawNumber(source) : Number(source);
    } else {
      at = literalEnd(text, start);
      if (at - start === 5) value = false;
      else value = code === 0x74 ? true : null;
    }
    if (level === undefined) root = value;
    else put(level.holder, name, value);
    if (newLevel !== undefined) {
      level = newLevel;
      levels.push(newLevel);
      before = start + 1;
      at = yield* spaceEnd(text, before);
      if (text.charCodeAt(at) !== (newLevel.isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) continue;
    }

    // A value has ended, or the level it opened is empty. Close every level that ends here.
    while (true) {
      if (levels.length === 1 && member !== undefined) member.end = at;
      at = yield* spaceEnd(text, at);
      if (level === undefined) {
        if (at < text.length) throw FAULTS.rest(at);
        return { value: root, members, hasRaw: lossy };
      }
      const next = text.charCodeAt(at);
      if (next === COMMA) {
        before = at;
        at = yield* spaceEnd(text, at + 1);
        break;
      }
      if (next !== (level.isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) {
        throw FAULTS.close(level, at);
      }
      levels.pop();
      level = levels[levels.length - 1];
      at++;
    }
  }
}

function put(holder: Json[] | JsonObject, name: string, value: Json): void {
  if (Array.isArray(holder)) holder.push(value);
  else putMember(holder, name, value);
}

/** Returns the first offset from `at` on that is not white space. */
function* spaceEnd(text: string, at: number): Steps<number> {
  for (let pause = at + STEP_CHARS; isSpace(text.charCodeAt(at)); at++) {
    if (at < pause) continue;
    yield;
    pause = at + STEP_CHARS;
  }
  return at;
}

/** Returns the end of a string if its next quote is the closing one; otherwise 0. */
function quickEnd(text: string, open: number): number {
  const quote = text.indexOf('"', open + 1);
  return quote > 0 && text.charCodeAt(quote - 1) !== BACKSLASH ? quote + 1 : 0;
}

/**
 * Returns the end of a string, after its closing quote.
 * @throws {JsonError} without one, at the first fault of the string
 */
function* stringEnd(text: string, open: number): Steps<number> {
  let pause = open + STEP_CHARS;
  for (let quote = text.indexOf('"', open + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let escape = quote;
    for (; text.charCodeAt(escape - 1) === BACKSLASH; escape--) if (escape % STEP_CHARS === 0) yield;
    if ((quote - escape) % 2 === 0) return quote + 1;
    if (quote < pause) continue;
    yield;
    pause = quote + STEP_CHARS;
  }
  yield* readPieces(text, open + 1, text.length);
  throw FAULTS.quote(text);
}

/** Reads a string of at most one step. @param end the offset after its closing quote */
function readShort(text: string, open: number, end: number): string {
  try {
    return JSON.parse(text.slice(open, end));
  } catch {
    throw badPart(text, open + 1, end - 1);
  }
}

function* readString(text: string, open: number, end: number): Steps<string> {
  const pieces = yield* readPieces(text, open + 1, end - 1);
  yield;
  return pieces.join("");
}

/** Decodes a part of the inside of a string, which must not begin within an escape. */
function* readPieces(text: string, start: number, end: number): Steps<string[]> {
  const pieces: string[] = [];
  for (let from = start; from < end;) {
    yield;
    const to = from + STEP_CHARS >= end ? end : pieceEnd(text, from, from + STEP_CHARS);
    try {
      pieces.push(JSON.parse(`"${text.slice(from, to)}"`));
    } catch {
      throw badPart(text, from, to);
    }
    from = to;
  }
  return pieces;
}

/**
 * Returns the last offset up to `end` that is not within an escape. It is after `from`, which is not within one either.
 */
function pieceEnd(text: string, from: number, end: number): number {
  // An escape that is open at `end` began at one of the last five characters.
  for (let at = end - 5; at < end; at++) {
    if (text.charCodeAt(at) !== BACKSLASH) continue;
    let first = at;
    while (first > from && text.charCodeAt(first - 1) === BACKSLASH) first--;
    if ((at - first) % 2 !== 0) continue;
    const length = text.charCodeAt(at + 1) === LETTER_U ? 6 : 2;
    if (at + length > end) return at;
  }
  return end;
}

function badPart(text: string, from: number, to: number): JsonError {
  const fault = findBadPart(text, from, to);
  return typeof fault === "number" ? FAULTS.quote(text) : fault;
}
