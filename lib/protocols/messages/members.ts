/** Small readers of a body's members. The schema has checked them; what it could not check is refused here. */
import type { CacheMark, UnknownMembers } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import type { Permits, Texts } from "../codec.ts";
import { present } from "../members.ts";

/** What is counted over a whole request while it is read, and what was written of it before. */
export interface ReadContext {
  /** Places with a `cache_control` mark. */
  cacheMarks: number;
  images: number;
  texts: Texts | undefined;
  permits: Permits | undefined;
}

/** A value that must be an object. @throws {GatewayError} `invalid`, also for a number that is kept as text */
export function readObject(value: Json | undefined, param: string): JsonObject {
  if (isObject(value)) return value;
  throw new GatewayError("invalid", `Invalid value for ${param}: expected an object`, { param });
}

/** A value that must be an array. @throws {GatewayError} `invalid` */
export function readArray(value: Json | undefined, param: string): Json[] {
  if (Array.isArray(value)) return value;
  throw new GatewayError("invalid", `Invalid value for ${param}: expected an array`, { param });
}

/** A value that must be a string. @throws {GatewayError} `invalid` */
export function readString(value: Json | undefined, param: string): string {
  if (typeof value === "string") return value;
  throw new GatewayError("invalid", `Invalid value for ${param}: expected a string`, { param });
}

/** An object without its undefined members. */
export function withoutUndefined<T extends object>(members: T): T {
  return present(members) as T;
}

/** The members of an object that are not among those named, for the `rest` of what is read from it. */
export function readUnknownMembers(object: JsonObject, modelled: ReadonlySet<string>): UnknownMembers | undefined {
  let left: [string, Json | undefined][] | undefined;
  for (const name in object) {
    if (!modelled.has(name)) (left ??= []).push([name, object[name]]);
  }
  // Made of entries, so that a member called `__proto__` stays a member.
  return left === undefined ? undefined : { from: "messages", members: Object.fromEntries(left) };
}

/** The cache mark of an object, which is counted. */
export function readCache({ cache_control: mark }: JsonObject, tally: ReadContext): CacheMark | undefined {
  if (!isObject(mark)) return undefined;
  tally.cacheMarks++;
  return { ttl: mark.ttl === "1h" ? "1h" : "5m" };
}
