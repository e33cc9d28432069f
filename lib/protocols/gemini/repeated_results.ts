/** Removes tool results that a client sends twice. */
import { isDeepStrictEqual } from "node:util";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";

/**
 * Returns the body without results that repeat an earlier one of the same turn, including its id; the same object if
 * there are none. Gemini CLI 0.60 and 0.61 send every result twice when they resume a session, and Google refuses a
 * turn with more results than calls. https://github.com/google-gemini/gemini-cli/issues/29365 and 7410
 */
export function withoutRepeatedResults(body: JsonObject): JsonObject {
  if (!Array.isArray(body.contents)) return body;
  let seen = new Map<string, JsonObject>();
  let isChanged = false;
  const contents = body.contents.flatMap((content: Json): Json[] => {
    if (!isObject(content)) return [content];
    if (content.role === "model") {
      seen = new Map();
      return [content];
    }
    const { parts } = content;
    if (!Array.isArray(parts)) return [content];
    const newParts = parts.filter((part) => !isRepeated(part, seen));
    if (newParts.length === parts.length) return [content];
    isChanged = true;
    return newParts.length === 0 ? [] : [{ ...content, parts: newParts }];
  });
  return isChanged ? { ...body, contents } : body;
}

/** Returns whether a part repeats the first result with its id. Records results in `seen`. */
function isRepeated(part: Json, seen: Map<string, JsonObject>): boolean {
  const result = isObject(part) ? part.functionResponse : undefined;
  // Equal results without ids may belong to two calls.
  if (result === undefined || !isObject(result) || typeof result.id !== "string" || result.id === "") return false;
  const first = seen.get(result.id);
  if (first === undefined) seen.set(result.id, result);
  return first !== undefined && isDeepStrictEqual(first, result);
}
