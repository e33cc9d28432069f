/** JSON as text, written at once or in slices. */
import type { Member } from "./lexer.ts";
import type { ObjectText } from "./splice.ts";
import { isRawNumber, type Json, type JsonObject } from "./values.ts";
import { LONG_TEXT_CHARS, runSliced } from "../scheduler.ts";
import { characterEnd } from "../text.ts";

/** Characters, and values, that one step writes: less than a millisecond. */
const STEP_CHARS = 32_768;
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

/** Writes a value as compact JSON, raw numbers as they were read. */
export function writeJson(value: Json): string {
  return JSON.stringify(value);
}

/** Writes as `writeJson`, and yields to the event loop where the value is long. */
export async function writeJsonSliced(value: Json): Promise<string> {
  return weigh(value, LONG_TEXT_CHARS) >= 0 ? JSON.stringify(value) : await runSliced(writeSteps(value));
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

/** `writeJson` in steps. */
export function* writeSteps(value: Json): Steps<string> {
  const writer = new Writer();
  yield* writer.write(value);
  yield;
  return writer.text();
}

/** Weight of one value beside its characters. */
export const VALUE_WEIGHT = STEP_CHARS / STEP_VALUES;

class Writer {
  readonly #pieces: string[] = [];
  /** Weight that may still be written in this step. */
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
      const to = characterEnd(value, from + STEP_CHARS);
      this.#pieces.push(JSON.stringify(value.slice(from, to)).slice(1, -1));
      from = to;
    }
    this.#pieces.push('"');
    this.#room = 0;
  }
}

/** Returns the rest of a weight after a value: one per character, `VALUE_WEIGHT` per value. Stops below 0. */
export function weigh(value: Json | undefined, limit: number): number {
  const remaining = limit - VALUE_WEIGHT;
  if (typeof value === "string") return remaining - value.length;
  if (typeof value !== "object" || value === null) return remaining;
  if (isRawNumber(value)) return remaining - value.rawJSON.length;
  if (Array.isArray(value)) return weighAll(value, remaining);
  let budget = remaining;
  for (const name in value) {
    budget = weigh(value[name], budget - name.length);
    if (budget < 0) break;
  }
  return budget;
}

function weighAll(items: readonly Json[], limit: number): number {
  let remaining = limit;
  for (const item of items) {
    remaining = weigh(item, remaining);
    if (remaining < 0) break;
  }
  return remaining;
}
