/** Writes members that the canonical form does not model. */
import type { UnsupportedParameters } from "../canonical/unsupported_parameters.ts";
import type { UnknownMembers } from "../canonical/types.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";

/** Returns the members of chat itself. Those of another protocol are named instead. */
export function ownUnknownMembers(
  unknownMembers: UnknownMembers | undefined,
  dropped: UnsupportedParameters,
): JsonObject {
  if (unknownMembers === undefined || unknownMembers.from === "chat") return unknownMembers?.members ?? {};
  for (const name of Object.keys(unknownMembers.members)) dropped.add(name);
  return {};
}

/** Puts unknown members back: beside the written members, and inside objects among them. */
export function withUnknownMembers(written: JsonObject, unknownMembers: JsonObject): JsonObject {
  const members = new Map<string, Json | undefined>(Object.entries(written));
  for (const [name, value] of Object.entries(unknownMembers)) {
    const had = members.get(name);
    members.set(name, isObject(had) && isObject(value) ? { ...had, ...value } : value);
  }
  return Object.fromEntries(members);
}
