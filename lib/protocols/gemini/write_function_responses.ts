/** Writes tool results, whose output must be an object. */
import type { ContentBlockOf } from "../canonical/types.ts";
import { mayBeObject, parseObject } from "../canonical/tool_input.ts";
import type { JsonObject } from "../../json/mod.ts";
import { writeMedia } from "./write_media.ts";

/** Writes the members of a `functionResponse` besides id and name: its text as an object, and its media. */
export function writeResponse(result: ContentBlockOf<"tool_result">): JsonObject {
  const { blocks, isError, output } = result;
  const text = textOf(result);
  const media = blocks.flatMap((block) => block.type === "media" ? [writeMedia(block.media, block.name)] : []);
  const object = output === undefined && isError !== true ? parseObject(text) : output;
  const response = isError === true ? { error: text } : object ?? { result: text };
  return media.length === 0 ? { response } : { response, parts: media };
}

/** Returns the text of a result if it may be a JSON object; undefined otherwise. */
export function objectText(result: ContentBlockOf<"tool_result">): string | undefined {
  const text = result.isError === true ? "" : textOf(result);
  return mayBeObject(text) ? text : undefined;
}

function textOf({ blocks }: ContentBlockOf<"tool_result">): string {
  return blocks.flatMap((block) => block.type === "text" || block.type === "refusal" ? [block.text] : []).join("\n");
}
