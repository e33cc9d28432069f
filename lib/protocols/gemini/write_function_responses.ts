/** Writes tool results, and tool input and output as objects. */
import type { ContentBlockOf } from "../canonical/types.ts";
import { isObject, JsonError, type JsonObject, parseJson } from "../../json/mod.ts";
import { writeMedia } from "./write_media.ts";

/** Writes a `functionResponse` without id and name: its text as an object, and its media. */
export function writeResponse(result: ContentBlockOf<"tool_result">): JsonObject {
  const { blocks, isError, output } = result;
  const text = textOf(result);
  const media = blocks.flatMap((block) => block.type === "media" ? [writeMedia(block.media, block.name)] : []);
  const object = output === undefined && isError !== true ? parseObject(text) : output;
  const response = isError === true ? { error: text } : object ?? { result: text };
  return media.length === 0 ? { response } : { response, parts: media };
}

/** Returns the text of a result if it may be an object. */
export function objectText(result: ContentBlockOf<"tool_result">): string | undefined {
  const text = result.isError === true ? "" : textOf(result);
  return mayBeObject(text) ? text : undefined;
}

function textOf({ blocks }: ContentBlockOf<"tool_result">): string {
  return blocks.flatMap((block) => block.type === "text" || block.type === "refusal" ? [block.text] : []).join("\n");
}

/** Returns the arguments of a call as an object. Other text, such as incomplete arguments, goes under `_raw`. */
export function writeArgs(call: ContentBlockOf<"tool_call">): JsonObject {
  if (call.custom === true) return { input: call.arguments };
  if (call.arguments.trim() === "") return {};
  const input = call.input === undefined ? parseObject(call.arguments) : call.input;
  return input ?? { _raw: call.arguments };
}

function parseObject(text: string): JsonObject | undefined {
  if (!mayBeObject(text)) return undefined;
  try {
    const value = parseJson(text);
    return isObject(value) ? value : undefined;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return undefined;
  }
}

function mayBeObject(text: string): boolean {
  return text.trimStart().startsWith("{");
}
