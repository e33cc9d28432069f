/** Reads members of JSON objects as their expected types: a value of another type counts as absent. */
import { isObject, isRawNumber, type Json, type JsonObject, toDouble } from "../json/mod.ts";

/** Returns a string; undefined for other values. */
export function stringOf(value: Json | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Returns a string that is not empty; undefined for other values. */
export function nonEmptyStringOf(value: Json | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns a number in any spelling, such as `1.0` for a count; undefined for other values. */
export function numberOf(value: Json | undefined): number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "object" && isRawNumber(value) ? toDouble(value) : undefined;
}

/** Returns a count, which is an integer of at least 0; undefined for other values. */
export function countOf(value: Json | undefined): number | undefined {
  const number = numberOf(value);
  return number !== undefined && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

/** As `countOf`, but also reads counts written as text, which some servers send. */
export function spelledCountOf(value: Json | undefined): number | undefined {
  return typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : countOf(value);
}

/** Returns a boolean; undefined for other values. */
export function booleanOf(value: Json | undefined): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

/** Returns an object; undefined for other values. */
export function objectOf(value: Json | undefined): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

/** Returns an array; an empty one for other values. */
export function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the objects in an array; an empty list for other values. */
export function objectsOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Returns the strings in an array; an empty list for other values. */
export function textsOf(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

/** Returns the texts of content parts, which are objects with a member `text`. */
export function partTexts(parts: Json | undefined): string[] {
  return objectsOf(parts).map(({ text }) => stringOf(text) ?? "");
}

/** The type of an object without its undefined members: members that may be undefined are optional. */
type Present<T> =
  & { [K in keyof T as undefined extends T[K] ? never : K]: T[K] }
  & { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> };

/** Returns an object without its undefined members. The names must be constants: a client could send `__proto__`. */
export function present<const T extends object>(members: T): Present<T> {
  const present: Partial<T> = {};
  for (const name in members) {
    if (members[name] !== undefined) present[name] = members[name];
  }
  return present as unknown as Present<T>;
}

/** Returns an object without its undefined members, which may have any names; undefined if none is left. */
export function someOf(members: JsonObject): JsonObject | undefined {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** Returns an object without its members that are null. */
export function withoutNulls(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
}
