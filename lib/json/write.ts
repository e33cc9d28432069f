/** Writes JSON values as text, at once or in slices. */
import type { Member } from "./lexer.ts";
import type { ObjectText } from "./splice.ts";
import { isRawNumber, type Json, type JsonObject } from "./values.ts";
import { LONG_TEXT_CHARS, runSliced } from "../scheduler.ts";
import { characterEnd } from "../text.ts";

/** Maximum number of characters that one step writes, which takes less than a millisecond. */
const STEP_CHARS = 32_768;
/** Maximum number of values that one step writes. */
const STEP_VALUES = 512;

/** Writes each value as `writeJson`, in slices. */
export function writeEachSliced<T extends Json>(values: readonly T[]): Promise<Map<T, string>> {
  return runSliced(writeEach(values));
}

/** Writes each value as `writeJson`, in steps. */
export function* writeEach<T extends Json>(values: readonly T[]): Steps<Map<T, string>> {
  const texts = new Map<T, string>();
  for (const value of values) texts.set(value, yield* writeSteps(value));
  return texts;
}

/** Work that can be interrupted where it yields. */
type Steps<T> = Generator<void, T>;

/** Writes a value as compact JSON. Raw numbers are written as they were read. */
export function writeJson(value: Json): string {
  return JSON.stringify(value);
}

/** Writes as `writeJson`, and yields to the event loop if the value is large. */
export async function writeJsonSliced(value: Json): Promise<string> {
  return subtractWeight(value, LONG_TEXT_CHARS) >= 0 ? JSON.stringify(value) : await runSliced(writeSteps(value));
}

/** Writes an object as `writeJsonSliced`, with the positions of its members. */
export async function writeMembersSliced(object: JsonObject): Promise<ObjectText> {
  const members: Member[] = [];
  let text = "{";
  for (const [name, value] of Object.entries(object)) {
    if (value === undefined) continue;
    const before = text.length;
    text += `${members.length > 0 ? "," : ""}${JSON.stringify(name)}:`;
    const start = text.length;
    text += await writeJsonSliced(value);
    members.push({ name, before, start, end: text.length });
  }
  return { text: `${text}}`, members };
}

/** Writes as `writeJson`, in steps for `runSliced`. */
export function* writeSteps(value: Json): Steps<string> {
  const writer = new Writer();
  yield* writer.write(value);
  yield;
  return writer.text();
}

/** Fixed weight of a value, in addition to its characters. */
export const VALUE_WEIGHT = STEP_CHARS / STEP_VALUES;

/** Writes one value in steps. */
class Writer {
  readonly #pieces: string[] = [];
  /** Weight that may still be written in this step. */
  #room = STEP_CHARS;

  text(): string {
    return this.#pieces.join("");
  }

  *write(value: Json): Steps<void> {
    let room = subtractWeight(value, this.#room);
    if (room < 0) {
      yield;
      room = subtractWeight(value, STEP_CHARS);
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
      // A piece must not end within a surrogate pair.
      const to = characterEnd(value, from + STEP_CHARS);
      this.#pieces.push(JSON.stringify(value.slice(from, to)).slice(1, -1));
      from = to;
    }
    this.#pieces.push('"');
    this.#room = 0;
  }
}

/**
 * Subtracts the weight of a value from `available`: 1 per character, and `VALUE_WEIGHT` per value. Stops below 0.
 * @returns the remaining weight; below 0 if the value is heavier than `available`
 */
export function subtractWeight(value: Json | undefined, available: number): number {
  let remaining = available - VALUE_WEIGHT;
  if (typeof value === "string") return remaining - value.length;
  if (typeof value !== "object" || value === null) return remaining;
  if (isRawNumber(value)) return remaining - value.rawJSON.length;
  if (Array.isArray(value)) return weighAll(value, remaining);
  for (const name in value) {
    remaining = subtractWeight(value[name], remaining - name.length);
    if (remaining < 0) break;
  }
  return remaining;
}

function weighAll(items: readonly Json[], available: number): number {
  let remaining = available;
  for (const item of items) {
    remaining = subtractWeight(item, remaining);
    if (remaining < 0) break;
  }
  return remaining;
}
