/** Helpers to read members of chat bodies. */
import { collectUnknownMembers, type InnerNames } from "../canonical/unknown_members.ts";
import type { UnknownMembers } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

/** Returns the members that the canonical form does not model, for spreading; see `collectUnknownMembers`. */
export function unknownIn(
  object: JsonObject,
  modelled: ReadonlySet<string>,
  inner?: InnerNames,
): { unknownMembers?: UnknownMembers } {
  return collectUnknownMembers("chat", object, inner === undefined ? { modelled } : { modelled, inner });
}

/** True for a request with the deprecated `functions`, whose answer has a `function_call`. */
export function usesLegacyFunctions(body: JsonObject): boolean {
  return Array.isArray(body.functions);
}
