/** Members of bodies of this protocol: read, left over, spread. */
import type { CacheMark, Rest } from "../../canonical/types.ts";
import type { JsonObject } from "../../json.ts";
import { objectOf } from "../members.ts";

/** An object with one member, or with none where there is no value: for spreading. */
export function optional<K extends string, V>(key: K, value: V | undefined): Partial<Record<K, V>> {
  return (value === undefined ? {} : { [key]: value }) as Partial<Record<K, V>>;
}

/** The prompt-cache mark of a message, part or tool. OpenRouter's clients put Anthropic's marks there. */
export function cacheOf(object: JsonObject): { cache?: CacheMark } {
  const mark = objectOf(object.cache_control);
  return mark === undefined ? {} : { cache: { ttl: mark.ttl === "1h" ? "1h" : "5m" } };
}

/**
 * What is left of an object beside the members that were read, where there is anything: for spreading. It mirrors the
 * object, so that merging it with what is written for the read members gives the object back.
 * @param read names of the members that were read
 * @param inner names that were read of objects inside the object, by the member that holds them
 */
export function restOf(
  object: JsonObject,
  read: readonly string[],
  inner: Readonly<Record<string, readonly string[]>> = {},
): { rest?: Rest } {
  const members = without(object, [...read, ...Object.keys(inner)]);
  for (const [name, innerRead] of Object.entries(inner)) {
    const left = without(objectOf(object[name]) ?? {}, innerRead);
    if (Object.keys(left).length > 0) members[name] = left;
  }
  return Object.keys(members).length === 0 ? {} : { rest: { from: "chat", members } };
}

/** Built from entries, so that a member called `__proto__` stays a member. */
function without(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}
