/** Schema, reader and writer of prompt-cache marks, which clients of every protocol may send. */
import { z } from "zod";
import { isObject, type JsonObject } from "../../json/mod.ts";
import type { CacheMark } from "./types.ts";

/** Schema of a mark. In chat and responses it is an extension that clients of gateways use. */
export const cacheField: z.ZodType = z.looseObject({
  type: z.literal("ephemeral"),
  ttl: z.enum(["5m", "1h"]).nullish().describe("How long the cache keeps the prefix. Default: 5m"),
}).nullish().describe("Cache the prompt up to and including this block");

/** Anthropic's limit of marks in a request. */
export const MAX_CACHE_MARKS = 4;

const NO_MARK = {};

/** Returns the `cache_control` of an object as the member `cache`, for spreading; no member if it has none. */
export function readCacheMark({ cache_control: mark }: JsonObject): { cache?: CacheMark } {
  return isObject(mark) ? { cache: { ttl: mark.ttl === "1h" ? "1h" : "5m" } } : NO_MARK;
}

/** Writes a mark, for spreading. Five minutes are the default, and some servers do not know `ttl`. */
export function writeCacheMark({ cache }: { cache?: CacheMark | undefined }): JsonObject {
  if (cache === undefined) return NO_MARK;
  return { cache_control: cache.ttl === "1h" ? { type: "ephemeral", ttl: "1h" } : { type: "ephemeral" } };
}
