/** Converts tool input from JSON text, which some protocols use, to objects, which others require. */
import type { ContentBlockOf } from "./types.ts";
import { isObject, type JsonObject, tryParse } from "../../json/mod.ts";

/**
 * Returns the arguments of a call as an object. Blank text is an empty object; other text, such as incomplete
 * arguments, becomes the member `_raw`, and that of a custom tool the member `input`.
 */
export function inputOf(call: ContentBlockOf<"tool_call">): JsonObject {
  if (call.custom === true) return { input: call.arguments };
  if (call.arguments.trim() === "") return {};
  const input = call.input === undefined ? parseObject(call.arguments) : call.input;
  return input ?? { _raw: call.arguments };
}

/** Parses JSON text; undefined if it is not an object. */
export function parseObject(text: string): JsonObject | undefined {
  const value = mayBeObject(text) ? tryParse(text) : undefined;
  return isObject(value) ? value : undefined;
}

/** False if a text is certainly not a JSON object. */
export function mayBeObject(text: string): boolean {
  return text.trimStart().startsWith("{");
}
