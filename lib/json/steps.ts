/**
 * JSON for long texts: read and written a piece at a time, with turns for others in between. What comes of it, and what is
 * said of a text that is at fault, is the same as with `readJson` and `writeJson`.
 */
import { type QuickJson, readQuick } from "./quick.ts";
import {
  addName,
  FAULTS,
  findBadPart,
  isLossy,
  isSpace,
  JSON_LIMITS,
  type JsonError,
  type JsonLimits,
  literalEnd,
  type Member,
  numberEnd,
  type ParsedJson,
  UNIQUE_LEVELS,
} from "./scan.ts";
import type { Source } from "./strings.ts";
import { isRawNumber, type Json, type JsonObject, putMember, rawNumber } from "./values.ts";
import { inSlices, soonInSlices } from "../scheduler.ts";
import { wholeEnd } from "./surrogates.ts";

/** Characters of a text that is read at once, whatever is in it: the worst, 22,000 times `-0`, takes 25 ms. */
export const SHORT_TEXT = 65_536;

/** Characters of a text that is written at once: 1 million escapes that come of lone surrogates take 10 ms. */
export const LONG_TEXT = 1_000_000;

/** Values that are read at once: 20,000 names that were never seen, or numbers to be kept, take 25 ms. */
const FEW_VALUES = 20_000;

/** Characters, and values, of a step: less than a millisecond. */
const STEP_CHARS = 32_768;
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
  keys: number;
  /** Names so far, in the levels that have each only once. */
  names: Set<string> | undefined;
}

/**
 * As `readJson`, of a text that may be long: where it is, or has a fault, nothing is said of it, and it is to be read in
 * turns.
 */
export function readSoon(source: Source, limits: JsonLimits = JSON_LIMITS): QuickJson | undefined {
  return readQuick(source, limits.nodes > FEW_VALUES ? { ...limits, nodes: FEW_VALUES } : limits);
}

/** As `readJson`, with turns for others in between where that takes long. @throws {JsonError} as `readJson` */
export function readInTurns(text: string, limits: JsonLimits = JSON_LIMITS): Promise<ParsedJson> {
  const steps = readSteps(text, limits);
  return text.length > SHORT_TEXT ? inSlices(steps) : soonInSlices(steps);
}

/** As `readJson`, of a text that may be long. @throws {JsonError} as `readJson` */
export async function readLongJson(text: string, limits: JsonLimits = JSON_LIMITS): Promise<ParsedJson> {
  return readSoon(text, limits) ?? await readInTurns(text, limits);
}

/** As `writeJson`, of a value that may be long. */
export function writeLongJson(value: Json): Promise<string> {
  return inSlices(writeSteps(value));
}

/** `readJson` in steps: one pass that makes the values, and stops at the first fault. @throws {JsonError} */
export function* readSteps(text: string, limits: JsonLimits): Steps<ParsedJson> {
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
      if (level.names !== undefined) addName(level.names, name, open);
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
    let opened: Level | undefined;
    if (code === QUOTE) {
      at = quickEnd(text, start) || (yield* stringEnd(text, start));
      value = at - start <= STEP_CHARS ? readShort(text, start, at) : yield* readString(text, start, at);
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      if (levels.length === limits.depth) throw FAULTS.levels(limits, at);
      const isObject = code === OPEN_OBJECT;
      const holder: Json[] | JsonObject = isObject ? {} : [];
      const names = isObject && levels.length < UNIQUE_LEVELS ? new Set<string>() : undefined;
      opened = { isObject, holder, keys: 0, names };
      value = holder;
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      at = numberEnd(text, start);
      const source = text.slice(start, at);
      const isRaw = isLossy(source);
      lossy = isRaw || lossy;
      value = isRaw ? rawNumber(source) : Number(source);
    } else {
      at = literalEnd(text, start);
      value = at - start === 5 ? false : code === 0x74 ? true : null;
    }
    if (level === undefined) root = value;
    else put(level.holder, name, value);
    if (opened !== undefined) {
      level = opened;
      levels.push(opened);
      before = start + 1;
      at = yield* spaceEnd(text, before);
      if (text.charCodeAt(at) !== (opened.isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) continue;
    }

    // A value has ended, or the level it opened is empty. Close every level that ends here.
    while (true) {
      if (levels.length === 1 && member !== undefined) member.end = at;
      at = yield* spaceEnd(text, at);
      if (level === undefined) {
        if (at < text.length) throw FAULTS.rest(at);
        return { value: root, members, hasRaw: lossy, isAscii: false };
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

/** The first offset from `at` on where no space stands. */
function* spaceEnd(text: string, at: number): Steps<number> {
  for (let pause = at + STEP_CHARS; isSpace(text.charCodeAt(at)); at++) {
    if (at < pause) continue;
    yield;
    pause = at + STEP_CHARS;
  }
  return at;
}

/** Behind the closing quote, where that is the next one; else 0. */
function quickEnd(text: string, open: number): number {
  const quote = text.indexOf('"', open + 1);
  return quote > 0 && text.charCodeAt(quote - 1) !== BACKSLASH ? quote + 1 : 0;
}

/** Behind the closing quote. @throws {JsonError} where there is none, or before that something that may not be there */
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

/** A string of one step; `end` is behind its closing quote. */
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

/** What a part of the inside of a string says, which begins where no escape is open. */
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

/** The last offset up to `end` that is not within an escape. It is after `from`, which is none either. */
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
  const found = findBadPart(text, from, to);
  return typeof found === "number" ? FAULTS.quote(text) : found;
}

/** `writeJson` in steps. */
export function* writeSteps(value: Json): Steps<string> {
  const writer = new Writer();
  yield* writer.write(value);
  yield;
  return writer.text();
}

/** What one value weighs beside its characters. */
const VALUE_WEIGHT = STEP_CHARS / STEP_VALUES;

class Writer {
  readonly #pieces: string[] = [];
  /** What may still be written in this step. */
  #room = STEP_CHARS;

  text(): string {
    return this.#pieces.join("");
  }

  *write(value: Json): Steps<void> {
    let room = weigh(value, this.#room);
    if (room < 0) {
      yield;
      room = weigh(value, STEP_CHARS);
      this.#room = STEP_CHARS;
    }
    if (room >= 0) {
      this.#room = room;
      this.#pieces.push(JSON.stringify(value));
    } else if (typeof value === "string") yield* this.#string(value);
    else if (Array.isArray(value)) yield* this.#array(value);
    else yield* this.#object(value);
  }

  *#array(items: readonly Json[]): Steps<void> {
    let mark = "[";
    for (const item of items) {
      this.#pieces.push(mark);
      yield* this.write(item);
      mark = ",";
    }
    this.#pieces.push("]");
  }

  *#object(value: Json): Steps<void> {
    let mark = "{";
    for (const [name, member] of Object.entries(value ?? {})) {
      if (member === undefined) continue;
      this.#pieces.push(mark);
      yield* this.write(name);
      this.#pieces.push(":");
      yield* this.write(member);
      mark = ",";
    }
    this.#pieces.push(mark === "{" ? "{}" : "}");
  }

  *#string(value: string): Steps<void> {
    this.#pieces.push('"');
    for (let from = 0; from < value.length;) {
      yield;
      // The two halves of a character are written as one.
      const to = wholeEnd(value, from + STEP_CHARS);
      this.#pieces.push(JSON.stringify(value.slice(from, to)).slice(1, -1));
      from = to;
    }
    this.#pieces.push('"');
    this.#room = 0;
  }
}

/** What is left of a weight, one per character and some per value; less than 0 where it is not enough. Stops there. */
function weigh(value: Json | undefined, most: number): number {
  const left = most - VALUE_WEIGHT;
  if (typeof value === "string") return left - value.length;
  if (typeof value !== "object" || value === null) return left;
  if (isRawNumber(value)) return left - value.rawJSON.length;
  if (Array.isArray(value)) return weighAll(value, left);
  let rest = left;
  for (const name in value) {
    rest = weigh(value[name], rest - name.length);
    if (rest < 0) break;
  }
  return rest;
}

function weighAll(items: readonly Json[], most: number): number {
  let rest = most;
  for (const item of items) {
    rest = weigh(item, rest);
    if (rest < 0) break;
  }
  return rest;
}
