/**
 * Edits JSON text. A relayed body is sent as the client wrote it, except for the members that must change. Everything
 * else keeps its order, its spelling and its numbers.
 */

import type { Span } from "../text.ts";
import { closingQuote, type Member, skipSpace } from "./lexer.ts";
import type { RawSpans } from "./raw_spans.ts";
import { isObject, type Json, type JsonObject } from "./values.ts";

/** A JSON object as text, and the positions of its members. */
export interface ObjectText {
  text: string;
  members: readonly Member[];
  /** The same in UTF-8, as the sender wrote it; absent if it is not known. */
  utf8?: ObjectBytes | undefined;
}

/** Returns the size of a body without decoding it: bytes if its UTF-8 is known, otherwise characters. */
export function documentSize(body: ObjectText): number {
  return body.utf8?.bytes.length ?? body.text.length;
}

/**
 * Returns the text of a top-level member's value; `undefined` if there is no such member.
 * @param limit most UTF-16 code units of the text, which is cut there; absent: the whole text
 */
export function memberText(body: ObjectText, wanted: string, limit: number = Infinity): string | undefined {
  const { members } = body.utf8 ?? body;
  const member = members.find(({ name }) => name === wanted);
  if (member === undefined) return undefined;
  const { start, end } = member;
  if (body.utf8 === undefined) return body.text.slice(start, Math.min(end, start + limit));
  // A code unit has at most three bytes. With one more byte, an incomplete character at the end is after `limit` units.
  const bytes = body.utf8.bytes.subarray(start, Math.min(end, start + 3 * limit + 1));
  return decoder.decode(bytes).slice(0, limit);
}

/** A JSON object in UTF-8, and the positions of its members in bytes. */
export interface ObjectBytes {
  bytes: Uint8Array<ArrayBuffer>;
  members: readonly Member[];
  /** Its long strings; absent if there are none, or if they are not known. */
  rawSpans?: RawSpans | undefined;
}

/** Changes of members by name: a JSON text replaces the value or adds the member, `undefined` removes the member. */
export type Edits = Readonly<Record<string, string | undefined>>;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

const QUOTE = 0x22, COMMA = 0x2c, COLON = 0x3a;
const OPEN_ARRAY = 0x5b, CLOSE_ARRAY = 0x5d, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d;

/**
 * Finds the value at a path of member names; undefined if there is none. The text must be JSON. In other text the
 * result is arbitrary, but the search always ends.
 */
export function findValue(text: string, path: readonly string[]): Span | undefined {
  let at = skipSpace(text, 0);
  let value: Span | undefined;
  for (const name of path) {
    value = undefined;
    for (const member of membersAt(text, at)) {
      // Of duplicate names the last one counts, as for the parser.
      if (member.name === name) value = { start: member.start, end: member.end };
    }
    if (value === undefined) return undefined;
    at = value.start;
  }
  return value;
}

/** Finds the top-level members of a JSON object without parsing their values. @param limit most members; absent: all */
export function scanMembers(text: string, limit?: number): ObjectText {
  const members = membersAt(text, skipSpace(text, 0));
  return { text, members: [...(limit === undefined ? members : members.take(limit))] };
}

/**
 * Changes top-level members in the text of a JSON object. A JSON text replaces the value; if the member is missing, it
 * is added at the end. `undefined` removes the member.
 */
export function spliceMembers(object: ObjectText | string, edits: Edits): string {
  const { text, members } = typeof object === "string" ? scanMembers(object) : object;
  let out = "";
  const ends = { close: text.lastIndexOf("}"), end: text.length };
  for (const part of editedParts(members, edits, ends)) {
    out += typeof part === "string" ? part : text.slice(part.start, part.end);
  }
  return out;
}

/** Does the same as `spliceMembers`. If the UTF-8 is known, the result is a list of unchanged bytes and new texts. */
export function spliceBody(body: ObjectText, edits: Edits): string | (string | Uint8Array<ArrayBuffer>)[] {
  if (body.utf8 === undefined) return spliceMembers(body, edits);
  const { bytes, members } = body.utf8;
  const ends = { close: bytes.lastIndexOf(CLOSE_OBJECT), end: bytes.length };
  return editedParts(members, edits, ends).map((part) =>
    typeof part === "string" ? part : bytes.subarray(part.start, part.end)
  );
}

/**
 * Returns the parts of the edited object: spans of the old text, and new texts.
 * @param ends offsets of the last brace and the end
 */
function editedParts(
  members: readonly Member[],
  edits: Edits,
  { close, end }: { close: number; end: number },
): (Span | string)[] {
  const parts: (Span | string)[] = [];
  let copied = 0;
  let kept = 0;
  for (let index = 0; index < members.length; index++) {
    const member = members[index];
    if (member === undefined) break;
    const { name } = member;
    if (!Object.hasOwn(edits, name)) {
      kept++;
      continue;
    }
    const value = edits[name];
    if (value === undefined) {
      parts.push({ start: copied, end: member.before });
      const next = members[index + 1];
      // The first remaining member must have no comma before it.
      copied = kept === 0 && next !== undefined ? next.before + 1 : member.end;
      continue;
    }
    kept++;
    parts.push({ start: copied, end: member.start }, value);
    copied = member.end;
  }
  let added = "";
  for (const name in edits) {
    const value = edits[name];
    if (value === undefined || members.some((member) => member.name === name)) continue;
    added += `${kept++ > 0 ? "," : ""}${JSON.stringify(name)}:${value}`;
  }
  if (added !== "") {
    parts.push({ start: copied, end: close }, added);
    copied = close;
  }
  parts.push({ start: copied, end });
  return parts;
}

/** Changes one member at a path of names, as `spliceMembers`. Missing objects on the path are added. */
export function splicePath(object: ObjectText | string, path: readonly string[], value: string): string {
  const [first = "", ...rest] = path;
  if (rest.length === 0) return spliceMembers(object, { [first]: value });
  const inner = memberText(typeof object === "string" ? scanMembers(object) : object, first);
  return spliceMembers(object, { [first]: splicePath(inner?.startsWith("{") === true ? inner : "{}", rest, value) });
}

/** A path of member names and array indices. */
export type JsonPath = readonly (string | number)[];

/** Values to remove, by member name or index: "all" removes the value, a map removes values inside it. */
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

/**
 * Appends the spans of the values to remove inside the value at an offset, with their commas.
 * @returns the value's end
 */
function findRemoved(
  text: string,
  { at: open, removals }: { at: number; removals: Removals },
  removed: Span[],
): number {
  const hasNames = text.charCodeAt(open) === OPEN_OBJECT;
  if (!hasNames && text.charCodeAt(open) !== OPEN_ARRAY) return valueEnd(text, open);
  const close = hasNames ? CLOSE_OBJECT : CLOSE_ARRAY;
  let before = open + 1;
  let kept = 0;
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
    // The first remaining value must have no comma before it.
    if (inner === "all") removed.push({ start: before, end: kept === 0 && hasNext ? comma + 1 : end });
    else kept++;
    if (!hasNext) return comma + 1;
    before = comma;
  }
}

/** Returns a copy of an object without the values at paths. */
export function withoutPaths(value: JsonObject, paths: Iterable<JsonPath>): JsonObject {
  return withoutRemoved(value, removalsOf(paths)) as JsonObject;
}

function withoutRemoved(value: Json | undefined, removals: Removals): Json | undefined {
  const inside = (item: Json | undefined, part: string | number) => {
    const inner = removals.get(part);
    return inner instanceof Map ? withoutRemoved(item, inner) : item;
  };
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => removals.get(index) === "all" ? [] : [inside(item, index) ?? null]);
  }
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(([name]) => removals.get(name) !== "all");
  return Object.fromEntries(kept.map(([name, member]) => [name, inside(member, name)]));
}

/** Yields the positions of a JSON array's elements without parsing them; none if the text is not an array. */
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

/** Yields the members of the object that starts at `open`. */
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

/** Returns the offset after the closing quote; the end of the text if there is none. */
function stringEnd(text: string, open: number): number {
  const quote = closingQuote(text, open);
  return quote < 0 ? text.length : quote + 1;
}
