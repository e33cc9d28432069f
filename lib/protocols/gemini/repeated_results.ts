/** Results of tools that a client sends twice. */
import { isObject, type Json, type JsonObject, writeJson } from "../../json/mod.ts";

/**
 * Returns the body without results that repeat an earlier one of the same turn, id included; the same object if there
 * are none. Gemini CLI 0.60 and 0.61 sends every result twice when it resumes a session, and Google refuses a turn with
 * more results than calls. https://github.com/google-gemini/gemini-cli/issues/29365 and 7410
 */
export function withoutRepeatedResults(body: JsonObject): JsonObject {
  if (!Array.isArray(body.contents)) return body;
  let seen = new Set<string>();
  let isChanged = false;
  const contents = body.contents.flatMap((content: Json): Json[] => {
    if (!isObject(content)) return [content];
    if (content.role === "model") {
      seen = new Set();
      return [content];
    }
    const { parts } = content;
    if (!Array.isArray(parts)) return [content];
    const kept = parts.filter((part) => !isRepeated(part, seen));
    if (kept.length === parts.length) return [content];
    isChanged = true;
    return kept.length === 0 ? [] : [{ ...content, parts: kept }];
  });
  return isChanged ? { ...body, contents } : body;
}

/** Returns whether a part is a result that was seen before, and remembers it. */
function isRepeated(part: Json, seen: Set<string>): boolean {
  const result = isObject(part) ? part.functionResponse : undefined;
  // Without ids, equal results may be those of two calls.
  if (result === undefined || !isObject(result) || typeof result.id !== "string" || result.id === "") return false;
  const text = writeJson(result);
  if (seen.has(text)) return true;
  seen.add(text);
  return false;
}
