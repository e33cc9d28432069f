/** Helpers to read members of a body that the schema has accepted. */
import { readCacheMark } from "../canonical/cache_mark.ts";
import { collectUnknownMembers } from "../canonical/unknown_members.ts";
import type { CacheMark, UnknownMembers } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import type { Permits, Texts } from "../codec.ts";

/** State of one request while it is read. */
export interface ReadContext {
  /** Number of `cache_control` marks. */
  cacheMarks: number;
  images: number;
  texts: Texts | undefined;
  permits: Permits | undefined;
}

/** Returns the value, which must be an object. @throws {GatewayError} `invalid`, for a raw number, an object to the schema */
export function readObject(value: Json | undefined, param: string): JsonObject {
  if (isObject(value)) return value;
  throw new GatewayError("invalid", `Invalid value for ${param}: expected an object`, { param });
}

/** Returns the members that the canonical form does not model, for spreading. */
export function unknownIn(object: JsonObject, modelled: ReadonlySet<string>): { unknownMembers?: UnknownMembers } {
  return collectUnknownMembers("messages", object, { modelled });
}

/** Reads the cache mark of an object, for spreading, and counts it. */
export function readCache(object: JsonObject, context: ReadContext): { cache?: CacheMark } {
  const mark = readCacheMark(object);
  if (mark.cache !== undefined) context.cacheMarks++;
  return mark;
}
