/** JSON as values: parsed with limits and without loss, written back. */
import { readQuick } from "./quick.ts";
import { JSON_LIMITS, JsonError, type JsonLimits, type ParsedJson } from "./scan.ts";
import { readSteps } from "./steps.ts";
import { isObject, isRawNumber, type Json, type JsonObject, type RawNumber } from "./values.ts";
import { atOnce } from "../scheduler.ts";

export { isObject, isRawNumber, JSON_LIMITS, JsonError };
export type { Json, JsonLimits, JsonObject, ParsedJson, RawNumber };

/**
 * Parses JSON text. Every number can be written back as it was: those that a double would change (`1.0`, `-0`, `1e400`,
 * 64-bit ids) become raw numbers. Two equal names are refused in the two outermost levels.
 * @throws {JsonError} where the text is not JSON or is more than the limits allow
 */
export function parseJson(text: string, limits: JsonLimits = JSON_LIMITS): Json {
  return readJson(text, limits).value;
}

/** As `parseJson`, with where the members stand, so that their text can be edited. @throws {JsonError} as `parseJson` */
export function readJson(text: string, limits: JsonLimits = JSON_LIMITS): ParsedJson {
  return readQuick(text, limits) ?? atOnce(readSteps(text, limits));
}

/** Integers as JSON writes them. */
const INTEGER = /^-?\d+$/;

/** True for a JSON integer of any size. */
export function isInteger(value: unknown): value is number | RawNumber {
  return isRawNumber(value) ? INTEGER.test(value.rawJSON) : Number.isInteger(value);
}

/** Writes a value as compact JSON, raw numbers as they were read. */
export function writeJson(value: Json): string {
  return JSON.stringify(value);
}

/**
 * Makes plain numbers of raw ones, as `plainNumber`, in place: members of objects, down to the given number of levels.
 * Where the gateway reads parameters it wants numbers; below lie tool inputs and schemas, which are other people's text.
 */
export function plainNumbers(value: Json, levels: number): void {
  for (const _ of plainSteps(value, levels));
}

/** `plainNumbers`, a member at a time. */
export function* plainSteps(value: Json, levels: number): Generator<void, void> {
  if (levels === 0 || typeof value !== "object" || value === null || isRawNumber(value)) return;
  if (Array.isArray(value)) {
    for (const item of value) {
      yield;
      yield* plainSteps(item, levels - 1);
    }
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    yield;
    if (!isRawNumber(member)) yield* plainSteps(member ?? null, levels - 1);
    else {
      const number = plainNumber(member);
      if (number !== undefined) Object.defineProperty(value, key, { value: number });
    }
  }
}

/**
 * A raw number as the nearest double, which is what other JSON readers make of it. `undefined` where no finite double is
 * near, and for an integer that a double does not hold exactly: another integer would be another count or id.
 */
export function plainNumber({ rawJSON }: RawNumber): number | undefined {
  const number = Number(rawJSON);
  if (!Number.isFinite(number) || (INTEGER.test(rawJSON) && BigInt(rawJSON) !== BigInt(number))) return undefined;
  return number;
}
