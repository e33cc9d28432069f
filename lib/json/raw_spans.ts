/**
 * Writes JSON of a value whose long strings were parsed from another JSON text: their raw spans are copied instead of written
 * and encoded again. Without it a translated body of 60 KB takes 14.2 % more CPU of the whole request.
 */
import { Buffer } from "node:buffer";
import { isObject, type Json, type JsonObject } from "./values.ts";

/** From how many bytes on, quotes included, a string is copied: a shorter one is written as fast. */
export const RAW_SPAN_BYTES = 256;

/** Least share of a text that its literals must have: a search among many other values costs more than it saves. */
const LEAST_PART = 0.5;
/** Least bytes of all literals together: fewer are written as fast. */
const LEAST_BYTES = 2_048;

/** Long strings of a JSON text, in their order, that are spelled there as `writeJson` would. */
export interface RawSpans {
  values: string[];
  /** Start and end of each in the UTF-8 of the text, in bytes, quotes included. */
  places: number[];
  /** Bytes of all of them. */
  bytes: number;
}

/** Source of the copied literals. */
export interface RawSpanSource {
  bytes: Uint8Array<ArrayBuffer>;
  literals?: RawSpans | undefined;
}

/** Placeholder of a literal in the rest. It is one byte, and rare in texts. */
const MARK = "\x7f";
const MARK_CODE = 0x7f;

/** Places where a string is looked for, for each literal that there is. They mostly come in the order of the text. */
const TRIES = 8;

/** Most bytes of the rest for which there is a buffer already. */
const REST_BYTES = 16_384;
const shared = new Uint8Array(REST_BYTES);
const encoder = new TextEncoder();

/**
 * The text that `writeJson` writes, in UTF-8; `undefined` where little of it can be copied. The bytes of the source
 * must not change as long as it may be written.
 */
export function writeWithRawSpans(value: Json, { bytes, literals }: RawSpanSource): RawSpanJson | undefined {
  if (literals === undefined || literals.bytes < Math.max(LEAST_BYTES, bytes.length * LEAST_PART)) return undefined;
  const finder = new Finder(literals);
  const marked = finder.mark(value);
  const { places } = finder;
  if (places.length === 0) return undefined;
  const rest = JSON.stringify(marked);
  let marks = 0;
  for (let at = rest.indexOf(MARK); at >= 0; at = rest.indexOf(MARK, at + 1)) marks++;
  // The text itself has the placeholder.
  if (marks * 2 !== places.length) return undefined;
  return new RawSpanJson(rest, { places, bytes });
}

/** A JSON text that is put together where it is needed. */
export class RawSpanJson {
  /** In bytes. */
  readonly length: number;
  readonly #rest: string;
  readonly #restBytes: number;
  readonly #places: readonly number[];
  readonly #bytes: Uint8Array<ArrayBuffer>;

  constructor(rest: string, { places, bytes }: { places: readonly number[]; bytes: Uint8Array<ArrayBuffer> }) {
    this.#rest = rest;
    this.#places = places;
    this.#bytes = bytes;
    let length = this.#restBytes = Buffer.byteLength(rest);
    // A mark and its quotes are three bytes.
    for (let index = 0; index < places.length; index += 2) {
      length += (places[index + 1] ?? 0) - (places[index] ?? 0) - 3;
    }
    this.length = length;
  }

  /** Writes it from `start` on. Returns where it ends; `undefined` where there is no room. */
  write(into: Uint8Array, start: number): number | undefined {
    const end = start + this.length;
    if (end > into.length) return undefined;
    const places = this.#places;
    const rest = this.#restBytes <= REST_BYTES ? shared : new Uint8Array(this.#restBytes);
    encoder.encodeInto(this.#rest, rest);
    let from = 0;
    let at = start;
    for (let index = 0; index < places.length; index += 2) {
      const mark = rest.indexOf(MARK_CODE, from);
      const first = places[index] ?? 0;
      const behind = places[index + 1] ?? 0;
      into.set(part(rest, from, mark - 1), at);
      at += mark - 1 - from;
      into.set(part(this.#bytes, first, behind), at);
      at += behind - first;
      from = mark + 2;
    }
    into.set(part(rest, from, this.#restBytes), at);
    return end;
  }
}

/** As `subarray`, in two thirds of the time. */
function part(bytes: Uint8Array<ArrayBuffer>, start: number, end: number): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start);
}

/** Puts marks in the places of literals. */
class Finder {
  /** Start and end of each that was found. */
  readonly places: number[] = [];
  readonly #literals: RawSpans;
  #tries: number;
  /** Index of the literal expected next. */
  #next = 0;

  constructor(literals: RawSpans) {
    this.#literals = literals;
    this.#tries = TRIES * literals.values.length;
  }

  /** The value itself where there is nothing to mark in it. */
  mark(value: Json): Json {
    if (typeof value === "string") return value.length * 3 < RAW_SPAN_BYTES - 6 ? value : this.#markText(value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return this.#markList(value);
    // A raw number stays one.
    return isObject(value) ? this.#markObject(value) : value;
  }

  #markText(text: string): string {
    const { values, places } = this.#literals;
    for (let left = values.length; left > 0 && this.#tries > 0; left--, this.#tries--) {
      const at = this.#next;
      this.#next = at + 1 === values.length ? 0 : at + 1;
      if (values[at] !== text) continue;
      this.places.push(places[2 * at] ?? 0, places[2 * at + 1] ?? 0);
      return MARK;
    }
    return text;
  }

  #markList(list: Json[]): Json[] {
    let marked: Json[] | undefined;
    for (let index = 0; index < list.length; index++) {
      const item = list[index] ?? null;
      const other = this.mark(item);
      if (other !== item) (marked ??= list.slice())[index] = other;
    }
    return marked ?? list;
  }

  #markObject(object: JsonObject): JsonObject {
    let marked: JsonObject | undefined;
    for (const name in object) {
      const member = object[name];
      if (member === undefined) continue;
      const other = this.mark(member);
      // The copy has that member, so that `__proto__` is no other name.
      if (other !== member) (marked ??= { ...object })[name] = other;
    }
    return marked ?? object;
  }
}
