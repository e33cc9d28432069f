/** Tool input is an object in this protocol, and JSON text in the canonical form. */
import type { ContentBlockOf } from "../canonical/types.ts";
import { isObject, type Json, JsonError, type JsonObject, parseJson, writeEachSliced } from "../../json/mod.ts";
import type { Texts } from "../codec.ts";

/**
 * A call's arguments as the object they are. No text at all is no argument; text that is no object, such as arguments
 * that were cut off, goes under `_raw`.
 */
export function writeInput(call: ContentBlockOf<"tool_call">): JsonObject {
  if (call.custom === true) return { input: call.arguments };
  if (call.arguments.trim() === "") return {};
  const input = call.input === undefined ? parseInput(call.arguments) : call.input;
  return input ?? { _raw: call.arguments };
}

/** The object that JSON text says; undefined where it is no object. */
export function parseInput(text: string): JsonObject | undefined {
  try {
    const input = parseJson(text);
    return isObject(input) ? input : undefined;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return undefined;
  }
}

/** The inputs of a conversation's calls as the arguments they are in the canonical form, in steps. */
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
