/** Members of a body as the kinds they should have. The schema has judged before; what is of another kind is absent. */
import type { Rest } from "../../canonical/types.ts";
import { isObject, type Json, type JsonObject } from "../../json.ts";

/** The value where it is a string. */
export function stringOf(value: Json | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The value where it is a number. */
export function numberOf(value: Json | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
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

/** The objects of an array. */
export function objectsOf(value: Json | undefined): JsonObject[] {
  return listOf(value).filter(isObject);
}

/** An object without the members whose value is `undefined`. */
export function present<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/**
 * The members of an object that the canonical form does not model, as a `rest` member to spread; nothing where there are
 * none.
 * @param more members to keep that the wire has elsewhere
 */
export function restOf(
  value: JsonObject,
  { modelled, more = {} }: { modelled: ReadonlySet<string>; more?: JsonObject },
): { rest?: Rest } {
  const entries = [
    ...Object.entries(value).filter(([name]) => !modelled.has(name)),
    ...Object.entries(more).filter(([, member]) => member !== undefined),
  ];
  return entries.length === 0 ? {} : { rest: { from: "responses", members: Object.fromEntries(entries) } };
}
