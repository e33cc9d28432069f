/** Collects members that the canonical form does not model. */
import { isObject, type Json, type JsonObject, objectOfMembers } from "../../json/mod.ts";
import type { Protocol, UnknownMembers } from "./types.ts";

const NONE = {};
const NO_NAMES: ReadonlySet<string> = new Set();

/** No members. */
export const NO_MEMBERS: JsonObject = Object.freeze({});

/** Returns the unknown members of a part of an adapted prompt: they are all of the target's own protocol. */
export function ownMembers({ unknownMembers }: { unknownMembers?: UnknownMembers | undefined }): JsonObject {
  return unknownMembers?.members ?? NO_MEMBERS;
}

/** Names of modelled members of objects, by the member that has the object. */
export type InnerNames = Readonly<Record<string, ReadonlySet<string>>>;

/**
 * Returns the members of an object that are not modelled, for spreading; nothing if there are none. They keep their
 * places in inner objects, so a writer can merge them with the modelled members.
 * @param inner names of members that are modelled inside objects
 * @param more members to add, if they are defined
 */
export function collectUnknownMembers(
  from: Protocol,
  object: JsonObject,
  { modelled, inner = NONE, more = NONE }: { modelled: ReadonlySet<string>; inner?: InnerNames; more?: JsonObject },
): { unknownMembers?: UnknownMembers } {
  let unread: [string, Json | undefined][] | undefined;
  for (const name in object) {
    if (!modelled.has(name) && !Object.hasOwn(inner, name)) (unread ??= []).push([name, object[name]]);
  }
  for (const name in inner) {
    const value = object[name];
    if (!isObject(value)) continue;
    const { unknownMembers } = collectUnknownMembers(from, value, { modelled: inner[name] ?? NO_NAMES });
    if (unknownMembers !== undefined) (unread ??= []).push([name, unknownMembers.members]);
  }
  for (const name in more) {
    if (more[name] !== undefined) (unread ??= []).push([name, more[name]]);
  }
  return unread === undefined ? NONE : { unknownMembers: { from, members: objectOfMembers(unread) } };
}
