/** Helpers to read members of a body. They refuse what the schema could not check. */
import { readCacheMark } from "../canonical/cache_mark.ts";
import { collectUnknownMembers } from "../canonical/unknown_members.ts";
import type { CacheMark, UnknownMembers } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import type { Permits, Texts } from "../codec.ts";
import { present } from "../members.ts";

/** State of one request while it is read. */
export interface ReadContext {
  /** Number of `cache_control` marks. */
  cacheMarks: number;
  images: number;
  texts: Texts | undefined;
  permits: Permits | undefined;
}

/** Returns the value, which must be an object. @throws {GatewayError} `invalid`, also for a raw number */
export function readObject(value: Json | undefined, param: string): JsonObject {
  if (isObject(value)) return value;
  throw new GatewayError("invalid", `Invalid value for ${param}: expected an object`, { param });
}

/** Returns the value, which must be an array. @throws {GatewayError} `invalid` */
export function readArray(value: Json | undefined, param: string): Json[] {
  if (Array.isArray(value)) return value;
  throw new GatewayError("invalid", `Invalid value for ${param}: expected an array`, { param });
}

/** Returns the value, which must be a string. @throws {GatewayError} `invalid` */
export function readString(value: Json | undefined, param: string): string {
  if (typeof value === "string") return value;
  throw new GatewayError("invalid", `Invalid value for ${param}: expected a string`, { param });
}

/** Returns an object without its undefined members. */
export function withoutUndefined<T extends object>(members: T): T {
  return present(members) as T;
}

/** Returns the members that the canonical form does not model; undefined if there are none. */
export function readUnknownMembers(object: JsonObject, modelled: ReadonlySet<string>): UnknownMembers | undefined {
  return collectUnknownMembers("messages", object, { modelled }).unknownMembers;
}

/** Reads the cache mark of an object, and counts it. */
export function readCache(object: JsonObject, context: ReadContext): CacheMark | undefined {
  const { cache } = readCacheMark(object);
  if (cache !== undefined) context.cacheMarks++;
  return cache;
}
