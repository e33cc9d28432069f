/** Collects members that the canonical form does not model. */
import { type Json, type JsonObject, objectOfMembers } from "../../json/mod.ts";
import type { Protocol, UnknownMembers } from "./types.ts";

const NONE = {};

/** No members. */
export const NO_MEMBERS: JsonObject = Object.freeze({});

/** Returns the unknown members of a part of an adapted prompt: they are all of the target's own protocol. */
export function ownMembers({ unknownMembers }: { unknownMembers?: UnknownMembers | undefined }): JsonObject {
  return unknownMembers?.members ?? NO_MEMBERS;
}

/**
 * Returns the members of an object that are not modelled, for spreading; nothing if there are none.
 * @param more members to add, if they are defined
 */
export function collectUnknownMembers(
  from: Protocol,
  object: JsonObject,
  { modelled, more = NONE }: { modelled: ReadonlySet<string>; more?: JsonObject },
): { unknownMembers?: UnknownMembers } {
  let left: [string, Json | undefined][] | undefined;
  for (const name in object) {
    if (!modelled.has(name)) (left ??= []).push([name, object[name]]);
  }
  for (const name in more) {
    if (more[name] !== undefined) (left ??= []).push([name, more[name]]);
  }
  return left === undefined ? NONE : { unknownMembers: { from, members: objectOfMembers(left) } };
}
