/** JSON values: numbers without loss, and limits. */

/** Any JSON value. A number that a double cannot write back as it was read is a raw number, see `isRawNumber`. */
export type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object. `__proto__` is a key like any other. */
export interface JsonObject {
  [key: string]: Json | undefined;
}

/** A number kept as its text. It has the type of an object, but `isObject` is false for it. */
export interface RawNumber extends JsonObject {
  readonly rawJSON: string;
}

/** Numbers as their text, which the type library does not have yet. */
interface RawJson {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): boolean;
}

const rawJson = JSON as unknown as RawJson;

/** A number that is kept as its text. @throws {SyntaxError} where that is no JSON */
export function rawNumber(source: string): RawNumber {
  return rawJson.rawJSON(source);
}

/** True for a JSON object; false for arrays, `null` and numbers that are kept as text. */
export function isObject(value: unknown): value is JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  // All raw numbers have this member; to ask for them is a call into the engine.
  return !("rawJSON" in value) || !rawJson.isRawJSON(value);
}

/** True for a number that is kept as text. */
export function isRawNumber(value: unknown): value is RawNumber {
  return rawJson.isRawJSON(value);
}

/** Adds a member to an object, in which `__proto__` is a name like any other. */
export function putMember(object: JsonObject, name: string, value: Json): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Most members of an object that the engine describes by a hidden class. */
const FEW_MEMBERS = 32;

/**
 * Returns an object with these members. In V8 each name that no other object has at this place makes a hidden class: 5
 * µs. An object of which a member was deleted is a hash table, and takes 1 µs per name.
 */
export function objectOfMembers(members: readonly (readonly [string, Json | undefined])[]): JsonObject {
  if (members.length <= FEW_MEMBERS) return Object.fromEntries(members);
  const object: JsonObject = { first: 0, second: 0 };
  delete object.first;
  delete object.second;
  for (const [name, value] of members) if (value !== undefined) putMember(object, name, value);
  return object;
}

/** Integers as JSON writes them. */
const INTEGER = /^-?\d+$/;

/** True for a JSON integer of any size. */
export function isInteger(value: unknown): value is number | RawNumber {
  return isRawNumber(value) ? INTEGER.test(value.rawJSON) : Number.isInteger(value);
}

/**
 * The double nearest to a raw number. `undefined` where no finite double is near, and for an integer that a double does not
 * hold exactly: another integer would be another count or id.
 */
export function toDouble({ rawJSON }: RawNumber): number | undefined {
  const number = Number(rawJSON);
  if (!Number.isFinite(number) || (INTEGER.test(rawJSON) && BigInt(rawJSON) !== BigInt(number))) return undefined;
  return number;
}
