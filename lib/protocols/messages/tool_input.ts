/** Converts tool input, an object in this protocol, from and to JSON text. */
import type { ContentBlockOf } from "../canonical/types.ts";
import { isObject, type Json, JsonError, type JsonObject, parseJson, writeEachSliced } from "../../json/mod.ts";
import type { Texts } from "../codec.ts";

/**
 * Returns the arguments of a call as an object. Blank text is an empty object; other text, such as incomplete
 * arguments, goes under `_raw`.
 */
export function writeInput(call: ContentBlockOf<"tool_call">): JsonObject {
  if (call.custom === true) return { input: call.arguments };
  if (call.arguments.trim() === "") return {};
  const input = call.input === undefined ? parseInput(call.arguments) : call.input;
  return input ?? { _raw: call.arguments };
}

/** Parses JSON text; undefined if it is not an object. */
export function parseInput(text: string): JsonObject | undefined {
  try {
    const input = parseJson(text);
    return isObject(input) ? input : undefined;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return undefined;
  }
}

/** Writes the inputs of a conversation's calls as JSON text. */
export function writeInputs({ messages }: JsonObject): Promise<Texts> {
  const inputs: JsonObject[] = [];
  for (const message of listOf(messages)) {
    for (const block of isObject(message) ? listOf(message.content) : []) {
      if (!isObject(block) || block.type !== "tool_use" || !isObject(block.input)) continue;
      inputs.push(block.input);
    }
  }
  return writeEachSliced(inputs);
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
