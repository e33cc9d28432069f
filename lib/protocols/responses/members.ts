import type { UnknownMembers } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";

/**
 * Returns the members of an object that the canonical form does not model, for spreading; nothing if there are none.
 * @param more members to add
 */
export function unknownMembersOf(
  value: JsonObject,
  { modelled, more = {} }: { modelled: ReadonlySet<string>; more?: JsonObject },
): { unknownMembers?: UnknownMembers } {
  let left: [string, Json | undefined][] | undefined;
  for (const name in value) {
    if (!modelled.has(name)) (left ??= []).push([name, value[name]]);
  }
  for (const name in more) {
    if (more[name] !== undefined) (left ??= []).push([name, more[name]]);
  }
  // Entries keep a member called `__proto__` a member.
  return left === undefined ? {} : { unknownMembers: { from: "responses", members: Object.fromEntries(left) } };
}
