/** Members of bodies of this protocol that are left over. */
import type { UnknownMembers } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";

/**
 * The members of an object that the canonical form does not model, as a `rest` member to spread; nothing where there are
 * none.
 * @param more members to keep that the wire has elsewhere
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
  // Made of entries, so that a member called `__proto__` stays a member.
  return left === undefined ? {} : { unknownMembers: { from: "responses", members: Object.fromEntries(left) } };
}
