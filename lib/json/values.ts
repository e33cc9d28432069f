/** The types of JSON values, and raw numbers, which keep their text. */

/** Any JSON value. A number that a double would not write as it was read is a raw number: see `isRawNumber`. */
export type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object. `__proto__` is a key like any other. */
export interface JsonObject {
  [key: string]: Json | undefined;
}

/** A number kept as its text. It has the type of an object, but `isObject` is false for it. */
export interface RawNumber extends JsonObject {
  readonly rawJSON: string;
}

/** Functions of `JSON` for raw numbers, which the type library does not have yet. */
interface RawJson {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): boolean;
}

const rawJson = JSON as unknown as RawJson;

/** Returns a raw number with this text. @throws {SyntaxError} if the text is not JSON */
export function rawNumber(source: string): RawNumber {
  return rawJson.rawJSON(source);
}

/** Returns whether a value is a JSON object; false for arrays, `null` and raw numbers. */
export function isObject(value: unknown): value is JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  // All raw numbers have this member. It is checked first, because `isRawJSON` is a call into the engine.
  return !("rawJSON" in value) || !rawJson.isRawJSON(value);
}

/** Returns whether a value is a raw number. */
export function isRawNumber(value: unknown): value is RawNumber {
  return rawJson.isRawJSON(value);
}

/** Adds a member to an object, in which `__proto__` is a name like any other. */
export function putMember(object: JsonObject, name: string, value: Json): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Maximum number of members of an object that is created with hidden classes. */
const MAX_CLASS_MEMBERS = 32;

/**
 * Returns an object with these members. In V8 each new sequence of names creates a hidden class, which takes 5 µs per
 * name. An object from which a member was deleted is a hash table, which takes 1 µs per name, so large objects are
 * created that way.
 */
export function objectOfMembers(members: readonly (readonly [string, Json | undefined])[]): JsonObject {
  if (members.length <= MAX_CLASS_MEMBERS) return Object.fromEntries(members);
  const object: JsonObject = { first: 0, second: 0 };
  delete object.first;
  delete object.second;
  for (const [name, value] of members) if (value !== undefined) putMember(object, name, value);
  return object;
}

/** Matches integers in JSON. */
const INTEGER = /^-?\d+$/;

/** Returns whether a value is a JSON integer of any size. */
export function isInteger(value: unknown): value is number | RawNumber {
  return isRawNumber(value) ? INTEGER.test(value.rawJSON) : Number.isInteger(value);
}

/**
 * Returns the double nearest to a raw number; `undefined` if it is not finite, or if the number is an integer that a
 * double cannot represent exactly, because another integer would be another count or id.
 */
export function toDouble({ rawJSON }: RawNumber): number | undefined {
  const number = Number(rawJSON);
  if (!Number.isFinite(number) || (INTEGER.test(rawJSON) && BigInt(rawJSON) !== BigInt(number))) return undefined;
  return number;
}
