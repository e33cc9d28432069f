/**
 * Reads members of a body as their expected types. The schema has accepted the body before; a value of another type
 * counts as absent.
 */
import { isObject, isRawNumber, type Json, type JsonObject, toDouble } from "../json/mod.ts";

/** The value where it is a string. */
export function stringOf(value: Json | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The value where it is a number, however it is spelled: some servers write counts and indices with a fraction of zero. */
export function numberOf(value: Json | undefined): number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "object" && isRawNumber(value) ? toDouble(value) : undefined;
}

/** The value where it is a count: an integer from 0 on. */
export function countOf(value: Json | undefined): number | undefined {
  const number = numberOf(value);
  return number !== undefined && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

/** The same, also where it is written as text, as some servers do. */
export function spelledCountOf(value: Json | undefined): number | undefined {
  return typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : countOf(value);
}

/** The value where it is a boolean. */
export function booleanOf(value: Json | undefined): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

/** The value where it is an object. */
export function objectOf(value: Json | undefined): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

/** The value where it is an array, else an empty one. */
export function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** The objects of an array; none of anything else. */
export function objectsOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The strings of an array; none of anything else. */
export function textsOf(value: Json | undefined): string[] {
  return listOf(value).filter((item) => typeof item === "string");
}

/** An object without its undefined members. The names are the program's own, never a client's. */
export function present<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const kept: { [K in keyof T]?: T[K] } = {};
  for (const name in members) {
    if (members[name] !== undefined) kept[name] = members[name];
  }
  return kept as { [K in keyof T]?: Exclude<T[K], undefined> };
}
