/**
 * Edits in JSON text. A relayed body goes out as its sender wrote it, but for the members that must change: everything
 * else keeps its order, its spelling and its numbers.
 */

import type { Span } from "../text.ts";
import { closingQuote, type Member, skipSpace } from "./lexer.ts";
import type { RawSpans } from "./raw_spans.ts";
import { isObject, type Json, type JsonObject } from "./values.ts";

/** A JSON object as text, and where its members stand in it. */
export interface ObjectText {
  text: string;
  members: readonly Member[];
  /** The same as its sender wrote it; absent where that is not known. */
  utf8?: ObjectBytes | undefined;
}

/** Bytes of the UTF-8 where it is known, else characters of the text. Never decodes. */
export function documentSize(body: ObjectText): number {
  return body.utf8?.bytes.length ?? body.text.length;
}

/**
 * The text of a top-level member's value; `undefined` where there is no such member.
 * @param limit UTF-16 code units after which it is cut off; absent: the whole
 */
export function memberText(body: ObjectText, wantedName: string, limit: number = Infinity): string | undefined {
  const { members } = body.utf8 ?? body;
  const member = members.find(({ name }) => name === wantedName);
  if (member === undefined) return undefined;
  const { start, end } = member;
  if (body.utf8 === undefined) return body.text.slice(start, Math.min(end, start + limit));
  // A code unit takes three bytes at most. One more keeps a character that the end cuts out of the text.
  const bytes = body.utf8.bytes.subarray(start, Math.min(end, start + 3 * limit + 1));
  return decoder.decode(bytes).slice(0, limit);
}

/** A JSON object in UTF-8, and where its members stand in that, in bytes. */
export interface ObjectBytes {
  bytes: Uint8Array<ArrayBuffer>;
  members: readonly Member[];
  /** Long strings in it. */
  rawSpans?: RawSpans | undefined;
}

/** Changes of members: JSON text replaces a value or is added as a member, `undefined` removes one. */
export type Edits = Readonly<Record<string, string | undefined>>;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

const QUOTE = 0x22, COMMA = 0x2c, COLON = 0x3a;
const OPEN_ARRAY = 0x5b, CLOSE_ARRAY = 0x5d, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d;

/**
 * Finds the value at a path of member names. Made for text that is JSON; in other text it finds nothing or
 * something, but always ends.
 */
export function findValue(text: string, path: readonly string[]): Span | undefined {
  let at = skipSpace(text, 0);
  let found: Span | undefined;
  for (const name of path) {
    found = undefined;
    for (const member of membersAt(text, at)) {
      // The last of two equal names counts, as it does for the parser.
      if (member.name === name) found = { start: member.start, end: member.end };
    }
    if (found === undefined) return undefined;
    at = found.start;
  }
  return found;
}

/** Finds the top-level members of a JSON object's text without parsing their values. @param limit absent: all members */
export function scanMembers(text: string, limit?: number): ObjectText {
  const members = membersAt(text, skipSpace(text, 0));
  return { text, members: [...(limit === undefined ? members : members.take(limit))] };
}

/**
 * Changes top-level members in the text of a JSON object: JSON text replaces a value or, where the member is missing, is
 * added at the end; `undefined` removes the member.
 */
export function spliceMembers(object: ObjectText | string, edits: Edits): string {
  const { text, members } = typeof object === "string" ? scanMembers(object) : object;
  let out = "";
  const ends = { close: text.lastIndexOf("}"), end: text.length };
  for (const cut of cutAt(members, edits, ends)) {
    out += typeof cut === "string" ? cut : text.slice(cut.start, cut.end);
  }
  return out;
}

/** As `spliceMembers`; where the UTF-8 is known, its unchanged parts as bytes between the new texts. */
export function spliceBody(body: ObjectText, edits: Edits): string | (string | Uint8Array<ArrayBuffer>)[] {
  if (body.utf8 === undefined) return spliceMembers(body, edits);
  const { bytes, members } = body.utf8;
  const ends = { close: bytes.lastIndexOf(CLOSE_OBJECT), end: bytes.length };
  return cutAt(members, edits, ends).map((cut) => typeof cut === "string" ? cut : bytes.subarray(cut.start, cut.end));
}

/** Kept members of an object, by position, and new ones between them. `close` is the offset of its last brace. */
function cutAt(
  members: readonly Member[],
  edits: Edits,
  { close, end }: { close: number; end: number },
): (Span | string)[] {
  const cuts: (Span | string)[] = [];
  let copied = 0;
  let keptMembers = 0;
  for (let index = 0; index < members.length; index++) {
    const member = members[index];
    if (member === undefined) break;
    const { name } = member;
    if (!Object.hasOwn(edits, name)) {
      keptMembers++;
      continue;
    }
    const value = edits[name];
    if (value === undefined) {
      cuts.push({ start: copied, end: member.before });
      const next = members[index + 1];
      // The first member left has no comma before it.
      copied = keptMembers === 0 && next !== undefined ? next.before + 1 : member.end;
      continue;
    }
    keptMembers++;
    cuts.push({ start: copied, end: member.start }, value);
    copied = member.end;
  }
  let added = "";
  for (const name in edits) {
    const value = edits[name];
    if (value === undefined || members.some((member) => member.name === name)) continue;
    added += `${keptMembers++ > 0 ? "," : ""}${JSON.stringify(name)}:${value}`;
  }
  if (added !== "") {
    cuts.push({ start: copied, end: close }, added);
    copied = close;
  }
  cuts.push({ start: copied, end });
  return cuts;
}

/** As `spliceMembers`, for one member at a path of names. Missing objects on the way are added. */
export function splicePath(object: ObjectText | string, path: readonly string[], value: string): string {
  const [first = "", ...rest] = path;
  if (rest.length === 0) return spliceMembers(object, { [first]: value });
  const inner = memberText(typeof object === "string" ? scanMembers(object) : object, first);
  return spliceMembers(object, { [first]: splicePath(inner?.startsWith("{") === true ? inner : "{}", rest, value) });
}

/** Names of members, and places in arrays. */
export type JsonPath = readonly (string | number)[];

/** Values to be removed, by members and items: "all" of a value, or some inside of it. */
type Removals = Map<string | number, Removals | "all">;

function removalsOf(paths: Iterable<JsonPath>): Removals {
  const root: Removals = new Map();
  for (const path of paths) {
    let level: Removals | "all" = root;
    for (const [depth, part] of path.entries()) {
      if (level === "all") break;
      const inner: Removals | "all" = depth === path.length - 1 ? "all" : level.get(part) ?? new Map();
      level.set(part, inner);
      level = inner;
    }
  }
  return root;
}

/** Removes the values at paths from a JSON text, in one pass. Paths without a value change nothing. */
export function removePaths(text: string, paths: Iterable<JsonPath>): string {
  const removed: Span[] = [];
  findRemoved(text, { at: skipSpace(text, 0), removals: removalsOf(paths) }, removed);
  let out = "";
  let copied = 0;
  for (const { start, end } of removed) {
    if (start > copied) out += text.slice(copied, start);
    copied = end;
  }
  return out + text.slice(copied);
}

/** Appends the spans of removed values within the value at an offset, with their commas. Returns the value's end. */
function findRemoved(
  text: string,
  { at: open, removals }: { at: number; removals: Removals },
  removed: Span[],
): number {
  const hasNames = text.charCodeAt(open) === OPEN_OBJECT;
  if (!hasNames && text.charCodeAt(open) !== OPEN_ARRAY) return valueEnd(text, open);
  const close = hasNames ? CLOSE_OBJECT : CLOSE_ARRAY;
  let before = open + 1;
  let keptMembers = 0;
  for (let index = 0;; index++) {
    let at = skipSpace(text, before + (index === 0 ? 0 : 1));
    if (at >= text.length || text.charCodeAt(at) === close) return at + 1;
    let part: string | number = index;
    if (hasNames) {
      const nameEnd = stringEnd(text, at);
      part = readName(text.slice(at, nameEnd));
      at = skipSpace(text, skipSpace(text, nameEnd) + 1);
    }
    const inner = removals.get(part);
    const end = inner instanceof Map ? findRemoved(text, { at, removals: inner }, removed) : valueEnd(text, at);
    const comma = skipSpace(text, end);
    const hasNext = text.charCodeAt(comma) === COMMA;
    // The first one that is left has no comma before it.
    if (inner === "all") removed.push({ start: before, end: keptMembers === 0 && hasNext ? comma + 1 : end });
    else keptMembers++;
    if (!hasNext) return comma + 1;
    before = comma;
  }
}

/** Returns a copy of an object without the members at paths. */
export function withoutPaths(value: JsonObject, paths: Iterable<JsonPath>): JsonObject {
  return withoutRemoved(value, removalsOf(paths)) as JsonObject;
}

function withoutRemoved(value: Json | undefined, removals: Removals): Json | undefined {
  const inside = (item: Json | undefined, part: string | number) => {
    const inner = removals.get(part);
    return inner instanceof Map ? withoutRemoved(item, inner) : item;
  };
  if (Array.isArray(value)) return value.map((item, index) => inside(item, index) ?? null);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).filter(([name]) => removals.get(name) !== "all");
  return Object.fromEntries(entries.map(([name, member]) => [name, inside(member, name)]));
}

/** Positions of the elements of a JSON array; none where the text is no array. Does not parse the elements. */
export function* scanElements(text: string): Generator<Span, void> {
  const open = skipSpace(text, 0);
  if (text.charCodeAt(open) !== OPEN_ARRAY) return;
  let start = skipSpace(text, open + 1);
  while (start < text.length && text.charCodeAt(start) !== CLOSE_ARRAY) {
    const end = valueEnd(text, start);
    yield { start, end };
    const comma = skipSpace(text, end);
    if (text.charCodeAt(comma) !== COMMA) return;
    start = skipSpace(text, comma + 1);
  }
}

/** The members of the object that starts at `open`. */
function* membersAt(text: string, open: number): Generator<Member> {
  if (text.charCodeAt(open) !== OPEN_OBJECT) return;
  let before = open + 1;
  let at = skipSpace(text, before);
  while (text.charCodeAt(at) === QUOTE) {
    const nameEnd = stringEnd(text, at);
    const name = readName(text.slice(at, nameEnd));
    const colon = skipSpace(text, nameEnd);
    if (text.charCodeAt(colon) !== COLON) return;
    const start = skipSpace(text, colon + 1);
    const end = valueEnd(text, start);
    yield { name, before, start, end };
    const comma = skipSpace(text, end);
    if (text.charCodeAt(comma) !== COMMA) return;
    before = comma;
    at = skipSpace(text, comma + 1);
  }
}

function readName(quoted: string): string {
  if (!quoted.includes("\\")) return quoted.slice(1, -1);
  try {
    return String(JSON.parse(quoted));
  } catch {
    return "";
  }
}

function valueEnd(text: string, start: number): number {
  const code = text.charCodeAt(start);
  if (code === QUOTE) return stringEnd(text, start);
  if (code === OPEN_OBJECT || code === OPEN_ARRAY) return containerEnd(text, start);
  let at = start;
  while (at < text.length && !/[,\]}\s]/.test(text.charAt(at))) at++;
  return at;
}

function containerEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length;) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = stringEnd(text, at);
      continue;
    }
    at++;
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) depth++;
    if ((code === CLOSE_OBJECT || code === CLOSE_ARRAY) && --depth === 0) return at;
  }
  return text.length;
}

/** Just behind the closing quote; the end of a text that has none. */
function stringEnd(text: string, open: number): number {
  const quote = closingQuote(text, open);
  return quote < 0 ? text.length : quote + 1;
}
