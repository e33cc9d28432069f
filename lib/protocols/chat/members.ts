/** Members of bodies of this protocol: read, left over, spread. */
import type { CacheMark, UnknownMembers } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { objectOf } from "../members.ts";

const NONE = {};

/** An object with one member, or with none where there is no value: for spreading. */
export function optional<K extends string, V>(key: K, value: V | undefined): Partial<Record<K, V>> {
  return (value === undefined ? {} : { [key]: value }) as Partial<Record<K, V>>;
}

/** The prompt-cache mark of a message, part or tool. OpenRouter's clients put Anthropic's marks there. */
export function cacheOf(object: JsonObject): { cache?: CacheMark } {
  const mark = objectOf(object.cache_control);
  return mark === undefined ? NONE : { cache: { ttl: mark.ttl === "1h" ? "1h" : "5m" } };
}

/**
 * What is left of an object beside the members that were read, where there is anything: for spreading. It mirrors the
 * object, so that merging it with what is written for the read members gives the object back.
 * @param read names of the members that were read
 * @param inner names that were read of objects inside the object, by the member that holds them
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
  // Made of entries, so that a member called `__proto__` stays a member.
  return left === undefined ? NONE : { unknownMembers: { from: "chat", members: Object.fromEntries(left) } };
}

/** Members that are left; nearly always there are none. */
type Left = [string, Json | undefined][];
