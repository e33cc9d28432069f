/** JSON with comments and trailing commas, read in one pass. Mistakes carry their place. */
import { type Json, JsonError } from "../json/mod.ts";

const MAX_DEPTH = 64;
const STRING = /"(?:[^"\\\n]|\\.)*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /[A-Za-z_$][A-Za-z0-9_$]*/y;
const WORDS: ReadonlyMap<string, Json> = new Map<string, Json>([["true", true], ["false", false], ["null", null]]);

/** Parses a whole text. A duplicate member is an error. @throws {JsonError} with its position */
export function parseJsonc(text: string): Json {
  let at = text.startsWith("\ufeff") ? 1 : 0;

  function fail(message: string, position = at): never {
    throw new JsonError(message, position);
  }

  /** Passes over white space and comments; returns the character after them, or "" at the end. */
  function peek(): string {
    for (;;) {
      const char = text.charAt(at);
      if (char === " " || char === "\t" || char === "\n" || char === "\r") at++;
      else if (text.startsWith("//", at)) at = endOf(text.indexOf("\n", at));
      else if (text.startsWith("/*", at)) {
        const end = text.indexOf("*/", at + 2);
        if (end === -1) fail("The comment is not closed");
        at = end + 2;
      } else return char;
    }
  }

  function endOf(index: number): number {
    return index === -1 ? text.length : index;
  }

  function match(pattern: RegExp): string | undefined {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  }

  function readString(): string {
    const source = match(STRING);
    if (source === undefined) fail("The string is not closed on its line");
    try {
      const value: string = JSON.parse(source);
      at += source.length;
      return value;
    } catch {
      fail("The string holds an escape or a control character that JSON does not know");
    }
  }

  function readValue(depth: number): Json {
    const char = peek();
    if (depth > MAX_DEPTH) fail(`Nested deeper than ${MAX_DEPTH} levels`);
    if (char === "{") return readObject(depth);
    if (char === "[") return readArray(depth);
    if (char === '"') return readString();
    const source = match(NUMBER) ?? match(WORD);
    if (source === undefined) {
      fail(char === "" ? "Expected a value, but the text ends" : `Expected a value, not "${char}"`);
    }
    const value = WORDS.has(source) ? WORDS.get(source) : Number(source);
    if (value === undefined || Number.isNaN(value)) fail(`Expected a value, not "${source}"`);
    at += source.length;
    return value;
  }

  /** After a member: true where another one follows. A comma before the closing bracket is no member. */
  function hasNext(close: string): boolean {
    const char = peek();
    if (char === ",") {
      at++;
      return peek() !== close;
    }
    if (char !== close) fail(`Expected "," or "${close}"${char === "" ? ", but the text ends" : `, not "${char}"`}`);
    return false;
  }

  function readObject(depth: number): Json {
    const members = new Map<string, Json>();
    at++;
    for (let more = peek() !== "}"; more; more = hasNext("}")) {
      if (peek() !== '"') fail('Expected the name of a member in "…"');
      const start = at;
      const name = readString();
      if (members.has(name)) fail(`The member "${name}" stands here twice`, start);
      if (peek() !== ":") fail(`Expected ":" after "${name}"`);
      at++;
      members.set(name, readValue(depth + 1));
    }
    at++;
    return Object.fromEntries(members);
  }

  function readArray(depth: number): Json {
    const items: Json[] = [];
    at++;
    for (let more = peek() !== "]"; more; more = hasNext("]")) items.push(readValue(depth + 1));
    at++;
    return items;
  }

  const value = readValue(0);
  if (peek() !== "") fail(`Expected the end of the text, not "${text.charAt(at)}"`);
  return value;
}

/** Line and column of a position, both counted from 1, as editors show them. */
export function lineAndColumnAt(text: string, position: number): { line: number; column: number } {
  const before = text.slice(0, position);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: position - lineStart + 1 };
}
