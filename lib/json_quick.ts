/**
 * The quick reader of JSON: for texts that are as they should be and not too long. Of all others it says nothing, and
 * leaves them to the careful one.
 */
import {
  isLossy,
  type JsonLimits,
  literalEnd,
  type Member,
  numberEnd,
  type ParsedJson,
  UNIQUE_LEVELS,
} from "./json_scan.ts";
import {
  bytes,
  ESCAPED,
  findStrings,
  forgetNames,
  PLAIN,
  readName,
  type Source,
  STRING_WORDS,
  tape,
} from "./json_strings.ts";
import { type Json, type JsonObject, putMember, rawNumber } from "./json_values.ts";

const QUOTE = 0x22, MINUS = 0x2d, COMMA = 0x2c, COLON = 0x3a;
const OPEN_ARRAY = 0x5b, CLOSE_ARRAY = 0x5d, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d;
const ZERO = 0x30, NINE = 0x39, SPACE = 0x20;

/** Digits of a number that is added up here. */
const FEW_DIGITS = 15;

/** An array or an object that is open. */
interface Level {
  list: Json[] | undefined;
  object: JsonObject | undefined;
  keys: number;
}

/**
 * What a text says; `undefined` where it has a fault, is more than the limits allow, or cannot be read in this way.
 * Strings of 13 characters and more are parts of the text: who keeps one keeps all of it.
 */
export function readQuick(source: Source, limits: JsonLimits): ParsedJson | undefined {
  const decoded = findStrings(source);
  let read: ParsedJson | undefined;
  try {
    if (decoded !== undefined) read = walk(source.text, decoded, limits);
  } catch (error) {
    // Of numbers, words, and strings that need a parser.
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (read === undefined) forgetNames();
  return read;
}

function walk(text: string, decoded: string, limits: JsonLimits): ParsedJson | undefined {
  const levels: Level[] = [];
  /** Their places are those in bytes. */
  const members: Member[] = [];
  /** Of each member, `extra` at the start and at the end of its value. */
  const extras: number[] = [];
  let member: Member | undefined;
  let level: Level | undefined;
  let root: Json = null;
  let nodes = 0;
  let hasRaw = false;
  let before = 0;
  /** Of the string that comes next. */
  let next = 0;
  /** Where its part of the decoded text begins. */
  let said = 0;
  /** How many more bytes than code units are before `at`, which counts bytes. */
  let extra = 0;
  let at = skipSpace(0);

  while (true) {
    const object = level?.object;
    let name = "";
    if (level !== undefined && object !== undefined) {
      if (bytes[at] !== QUOTE || ++level.keys > limits.keys) return undefined;
      const start = at - extra + 1;
      at = tape[next] ?? 0;
      extra = tape[next + 1] ?? 0;
      const how = tape[next + 2] ?? 0;
      next += STRING_WORDS;
      const end = at - extra;
      if (how < ESCAPED) name = readName(text, { how, start, end });
      else if (how === PLAIN) name = text.slice(start, end);
      else if (how === ESCAPED) name = JSON.parse(text.slice(start - 1, end + 1));
      else {
        name = decoded.slice(said, how);
        said = how;
      }
      if (levels.length <= UNIQUE_LEVELS) {
        if (Object.hasOwn(object, name)) return undefined;
        if (levels.length === 1) members.push(member = { name, before, start: 0, end: 0 });
      }
      at = skipSpace(at + 1);
      if (bytes[at] !== COLON) return undefined;
      at = skipSpace(at + 1);
      if (levels.length === 1 && member !== undefined) {
        member.start = at;
        extras.push(extra);
      }
    }

    if (++nodes > limits.nodes) return undefined;
    const code = bytes[at] ?? 0;
    let value: Json;
    let opened: Level | undefined;
    if (code === QUOTE) {
      const start = at - extra + 1;
      at = tape[next] ?? 0;
      extra = tape[next + 1] ?? 0;
      const how = tape[next + 2] ?? 0;
      next += STRING_WORDS;
      const end = at - extra;
      at++;
      if (how === PLAIN) value = text.slice(start, end);
      else if (how >= 0) {
        value = decoded.slice(said, how);
        said = how;
      } else if (how === ESCAPED) value = JSON.parse(text.slice(start - 1, end + 1));
      else return undefined;
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      if (levels.length === limits.depth) return undefined;
      const list: Json[] | undefined = code === OPEN_ARRAY ? [] : undefined;
      const object: JsonObject | undefined = code === OPEN_OBJECT ? {} : undefined;
      value = list ?? object ?? null;
      opened = { list, object, keys: 0 };
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      const start = at;
      let number = 0;
      if (code !== MINUS && code !== ZERO) {
        for (let digit = code; digit >= ZERO && digit <= NINE && at - start < FEW_DIGITS; digit = bytes[++at] ?? 0) {
          number = number * 10 + digit - ZERO;
        }
      }
      const behind = bytes[at] ?? 0;
      if (at > start && (behind === COMMA || behind === CLOSE_OBJECT || behind === CLOSE_ARRAY)) value = number;
      else {
        const end = numberEnd(text, start - extra);
        const source = text.slice(start - extra, end);
        const isRaw = isLossy(source);
        hasRaw ||= isRaw;
        value = isRaw ? rawNumber(source) : Number(source);
        at = end + extra;
      }
    } else {
      const start = at - extra;
      const end = literalEnd(text, start);
      value = end - start === 5 ? false : code === 0x74 ? true : null;
      at = end + extra;
    }
    if (level === undefined) root = value;
    else if (object !== undefined) putMember(object, name, value);
    else level.list?.push(value);
    if (opened !== undefined) {
      level = opened;
      levels.push(opened);
      before = at + 1;
      at = skipSpace(at + 1);
      if (bytes[at] !== (opened.list === undefined ? CLOSE_OBJECT : CLOSE_ARRAY)) continue;
    }

    while (true) {
      if (levels.length === 1 && member !== undefined) {
        member.end = at;
        extras.push(extra);
      }
      at = skipSpace(at);
      if (level === undefined) {
        if (at - extra < text.length) return undefined;
        return { value: root, members: extra === 0 ? members : inText(members, extras), utf8Members: members, hasRaw };
      }
      const mark = bytes[at];
      if (mark === COMMA) {
        before = at;
        at = skipSpace(at + 1);
        break;
      }
      if (mark !== (level.list === undefined ? CLOSE_OBJECT : CLOSE_ARRAY)) return undefined;
      levels.pop();
      level = levels[levels.length - 1];
      at++;
    }
  }
}

/** Members with their places in the text. Between the end of one and where the next begins is nothing but space. */
function inText(members: readonly Member[], extras: readonly number[]): Member[] {
  return members.map(({ name, before, start, end }, index) => ({
    name,
    before: before - (extras[2 * index - 1] ?? 0),
    start: start - (extras[2 * index] ?? 0),
    end: end - (extras[2 * index + 1] ?? 0),
  }));
}

/** The first offset from `at` on where no white space stands. */
function skipSpace(at: number): number {
  while (true) {
    const code = bytes[at] ?? 0;
    if (code > SPACE || (code !== SPACE && code !== 0x0a && code !== 0x0d && code !== 0x09)) return at;
    at++;
  }
}
