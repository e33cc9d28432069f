/** Helpers to read JSON members; a value of another type counts as absent. */
import type { UnknownMembers } from "../canonical/types.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";

/** The value if it is a non-empty string: an empty one counts as absent. */
export function nonEmptyStringOf(value: Json | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The value if it is an object, else an empty object. */
export function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

/** Removes undefined members; `undefined` if none is left. */
export function someOf(members: JsonObject): JsonObject | undefined {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** Returns unknown members of this protocol. */
export function ownMembers(unknownMembers: UnknownMembers | undefined): JsonObject {
  return unknownMembers?.from === "gemini" ? unknownMembers.members : {};
}
