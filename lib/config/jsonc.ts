/** Parses JSON with comments and trailing commas in one pass. Errors carry their position. */
import { type Json, JsonError } from "../json/mod.ts";
import { memberText } from "./problems.ts";

const MAX_DEPTH = 64;
const STRING = /"(?:[^"\\\n]|\\.)*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /[A-Za-z_$][A-Za-z0-9_$]*/y;
const WORDS: ReadonlyMap<string, Json> = new Map<string, Json>([["true", true], ["false", false], ["null", null]]);

/** Parses a text. @throws {JsonError} with the position of the mistake; a duplicate member is one */
export function parseJsonc(text: string): Json {
  return new JsoncParser(text).parse();
}

/** Returns the position of each member and item of a valid text, by its path, such as `models[1].pricing`. */
export function memberPositions(text: string): ReadonlyMap<string, number> {
  const positions = new Map<string, number>();
  new JsoncParser(text, positions).parse();
  return positions;
}

class JsoncParser {
  readonly #text: string;
  readonly #positions: Map<string, number> | undefined;
  #at: number;

  /** @param positions receives the positions of members and items by their paths; absent: they are not needed */
  constructor(text: string, positions?: Map<string, number>) {
    this.#text = text;
    this.#positions = positions;
    this.#at = text.startsWith("\ufeff") ? 1 : 0;
  }

  parse(): Json {
    const value = this.#readValue(0, "");
    if (this.#peek() !== "") this.#fail(`Expected the end of the text, not "${this.#text.charAt(this.#at)}"`);
    return value;
  }

  #fail(message: string, position = this.#at): never {
    throw new JsonError(message, position);
  }

  /** Skips white space and comments; returns the next character, or "" at the end. */
  #peek(): string {
    for (;;) {
      const char = this.#text.charAt(this.#at);
      if (char === " " || char === "\t" || char === "\n" || char === "\r") this.#at++;
      else if (this.#text.startsWith("//", this.#at)) this.#at = this.#endOf(this.#text.indexOf("\n", this.#at));
      else if (this.#text.startsWith("/*", this.#at)) {
        const end = this.#text.indexOf("*/", this.#at + 2);
        if (end === -1) this.#fail("The comment is not closed");
        this.#at = end + 2;
      } else return char;
    }
  }

  #endOf(index: number): number {
    return index === -1 ? this.#text.length : index;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text)?.[0];
  }

  #readString(): string {
    const source = this.#match(STRING);
    if (source === undefined) this.#fail("The string is not closed on its line");
    try {
      const value: string = JSON.parse(source);
      this.#at += source.length;
      return value;
    } catch {
      this.#fail("The string has an escape or a control character that JSON does not allow");
    }
  }

  #readValue(depth: number, path: string): Json {
    const char = this.#peek();
    if (depth > MAX_DEPTH) this.#fail(`Nested deeper than ${MAX_DEPTH} levels`);
    if (char === "{") return this.#readObject(depth, path);
    if (char === "[") return this.#readArray(depth, path);
    if (char === '"') return this.#readString();
    const source = this.#match(NUMBER) ?? this.#match(WORD);
    if (source === undefined) {
      this.#fail(char === "" ? "Expected a value, but the text ends" : `Expected a value, not "${char}"`);
    }
    const value = WORDS.has(source) ? WORDS.get(source) : Number(source);
    if (value === undefined || Number.isNaN(value)) this.#fail(`Expected a value, not "${source}"`);
    this.#at += source.length;
    return value;
  }

  /** Returns whether another member follows. A trailing comma is allowed. */
  #hasNext(close: string): boolean {
    const char = this.#peek();
    if (char === ",") {
      this.#at++;
      return this.#peek() !== close;
    }
    if (char !== close) {
      this.#fail(`Expected "," or "${close}"${char === "" ? ", but the text ends" : `, not "${char}"`}`);
    }
    return false;
  }

  #readObject(depth: number, path: string): Json {
    const members = new Map<string, Json>();
    this.#at++;
    for (let more = this.#peek() !== "}"; more; more = this.#hasNext("}")) {
      if (this.#peek() !== '"') this.#fail("Expected the name of a member in double quotes");
      const start = this.#at;
      const name = this.#readString();
      if (members.has(name)) this.#fail(`The member "${name}" appears twice`, start);
      if (this.#peek() !== ":") this.#fail(`Expected ":" after "${name}"`);
      this.#at++;
      members.set(name, this.#readValue(depth + 1, this.#record(path, name, start)));
    }
    this.#at++;
    return Object.fromEntries(members);
  }

  /** Records where a member or an item begins, and returns its path. */
  #record(path: string, name: string | number, start: number): string {
    if (this.#positions === undefined) return "";
    const inner = path + memberText(name, path === "");
    this.#positions.set(inner, start);
    return inner;
  }

  #readArray(depth: number, path: string): Json {
    const items: Json[] = [];
    this.#at++;
    for (let more = this.#peek() !== "]"; more; more = this.#hasNext("]")) {
      items.push(this.#readValue(depth + 1, this.#record(path, items.length, this.#at)));
    }
    this.#at++;
    return items;
  }
}

/** Returns the line and column of a position, both counted from 1, as editors show them. */
export function lineAndColumnAt(text: string, position: number): { line: number; column: number } {
  const before = text.slice(0, position);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: position - lineStart + 1 };
}
