/** Helpers to read members of chat bodies. */
import type { UnknownMembers } from "../canonical/types.ts";
import { type Json, type JsonObject, objectOfMembers } from "../../json/mod.ts";
import { objectOf } from "../members.ts";

const NONE = {};

/** Returns an object with one member, or without it if there is no value: for spreading. */
export function optional<K extends string, V>(key: K, value: V | undefined): Partial<Record<K, V>> {
  return (value === undefined ? {} : { [key]: value }) as Partial<Record<K, V>>;
}

/**
 * Returns the members that were not read, if there are any, for spreading. They mirror the object: merging them with
 * what is written for the read members restores it.
 * @param read names of the members that were read
 * @param inner names of members read inside objects, by the member that holds the object
 */
export function unknownMembersOf(
  object: JsonObject,
  read: readonly string[],
  inner: Readonly<Record<string, readonly string[]>> = NONE,
): { unknownMembers?: UnknownMembers } {
  let left: Left | undefined;
  for (const name in object) {
    if (!read.includes(name) && !Object.hasOwn(inner, name)) (left ??= []).push([name, object[name]]);
  }
  for (const name in inner) {
    const within = unknownMembersOf(objectOf(object[name]) ?? NONE, inner[name] ?? []).unknownMembers;
    if (within !== undefined) (left ??= []).push([name, within.members]);
  }
  return left === undefined ? NONE : { unknownMembers: { from: "chat", members: objectOfMembers(left) } };
}

/** Unread members; undefined if there are none, as nearly always. */
type Left = [string, Json | undefined][];

/** True for a request with the deprecated `functions`, whose answer has a `function_call`. */
export function usesLegacyFunctions(body: JsonObject): boolean {
  return Array.isArray(body.functions);
}
