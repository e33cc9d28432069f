/** Members of JSON objects as the kinds they should have; what is of another kind is absent. */
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";

/** The value where it is a string with something in it: empty strings say what absent members say. */
export function nonEmptyStringOf(value: Json | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The value where it is an object, else an empty one. */
export function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

/** An object without the members that are `undefined`; `undefined` where nothing is left. */
export function someOf(members: JsonObject): JsonObject | undefined {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
