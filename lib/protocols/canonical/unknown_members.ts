/** Collects the members of requests that the canonical form does not model. */
import { isObject, type Json, type JsonObject, objectOfMembers } from "../../json/mod.ts";
import type { Protocol, UnknownMembers } from "./types.ts";

const NOTHING = {};
const NO_NAMES: ReadonlySet<string> = new Set();

/** No members. */
export const NO_MEMBERS: JsonObject = Object.freeze({});

/** Returns the unknown members of a part of an adapted prompt: all are of the target's own protocol. */
export function ownMembers({ unknownMembers }: { unknownMembers?: UnknownMembers | undefined }): JsonObject {
  return unknownMembers?.members ?? NO_MEMBERS;
}

/** Names of the modelled members of inner objects, by the name of the member with the object. */
export type InnerNames = Readonly<Record<string, ReadonlySet<string>>>;

/**
 * Returns the members of an object that are not modelled, for spreading; nothing if there are none. Those of
 * inner objects stay inside them, so that a writer can merge them with the modelled members.
 * @param inner names of members that are modelled inside objects
 * @param more members to add, if they are defined
 */
export function unknownIn(
  from: Protocol,
  object: JsonObject,
  modelled: ReadonlySet<string>,
  { inner = NOTHING, more = NOTHING }: { inner?: InnerNames; more?: JsonObject } = NOTHING,
): { unknownMembers?: UnknownMembers } {
  let collected: [string, Json | undefined][] | undefined;
  for (const name in object) {
    if (!modelled.has(name) && !Object.hasOwn(inner, name)) (collected ??= []).push([name, object[name]]);
  }
  for (const name in inner) {
    const value = object[name];
    if (!isObject(value)) continue;
    const { unknownMembers } = unknownIn(from, value, inner[name] ?? NO_NAMES);
    if (unknownMembers !== undefined) (collected ??= []).push([name, unknownMembers.members]);
  }
  for (const name in more) {
    if (more[name] !== undefined) (collected ??= []).push([name, more[name]]);
  }
  return collected === undefined ? NOTHING : { unknownMembers: { from, members: objectOfMembers(collected) } };
}
