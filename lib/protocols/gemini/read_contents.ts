/** Reads the system instruction and the conversation. */
import type { ContentBlock, Message } from "../canonical/types.ts";
import { collectUnknownMembers } from "../canonical/unknown_members.ts";
import { isObject, type Json, type JsonObject, writeEachSliced } from "../../json/mod.ts";
import type { Texts } from "../codec.ts";
import { listOf, objectOf, objectsOf } from "../members.ts";
import { type GeminiReadContext, readModelParts, readUserParts } from "./read_parts.ts";

const CONTENT = new Set(["role", "parts"]);

/** Reads the system instruction as a message; none if it is empty. @throws {GatewayError} `invalid` */
export function readSystem(value: Json | undefined, context: GeminiReadContext): Message[] {
  const content = objectOf(value);
  if (content === undefined) return [];
  const blocks = readUserParts(objectsOf(content.parts), "systemInstruction.parts", context);
  return blocks.some((block) => !isEmpty(block)) ? [{ role: "system", blocks }] : [];
}

/** Reads the conversation. @throws {GatewayError} `invalid` */
export function readContents(value: Json | undefined, context: GeminiReadContext): Message[] {
  let isModels = false;
  return objectsOf(value).flatMap((content, index): Message[] => {
    const path = `contents[${index}].parts`;
    const parts = objectsOf(content.parts);
    const byModel = content.role === "model";
    if (byModel && !isModels) context.calls.beginTurn();
    isModels = byModel;
    const read = byModel ? readModelParts(parts, path, context) : readUserParts(parts, path, context);
    const kept = read.filter((block) => !isEmpty(block));
    const blocks = kept.length > 0 ? kept : read.slice(0, 1);
    if (blocks.length === 0) return [];
    const unknown = collectUnknownMembers("gemini", content, { modelled: CONTENT });
    return [{ role: byModel ? "assistant" : "user", blocks, ...unknown }];
  });
}

function isEmpty(block: ContentBlock): boolean {
  return block.type === "text" && block.text === "";
}

/** Writes the arguments and results of a conversation as JSON text. */
export function writeObjects({ contents }: JsonObject): Promise<Texts> {
  const objects: JsonObject[] = [];
  for (const content of listOf(contents)) {
    for (const part of isObject(content) ? objectsOf(content.parts) : []) {
      const args = objectOf(part.functionCall)?.args;
      const response = objectOf(part.functionResponse)?.response;
      for (const object of [args, response]) if (isObject(object)) objects.push(object);
    }
  }
  return writeEachSliced(objects);
}
