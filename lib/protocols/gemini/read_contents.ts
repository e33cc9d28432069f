/** Reads the system instruction and the conversation. */
import type { ContentBlock, Message } from "../canonical/types.ts";
import { collectUnknownMembers } from "../canonical/unknown_members.ts";
import { isObject, type Json, type JsonObject, writeEach } from "../../json/mod.ts";
import type { PrewrittenJson } from "../codec.ts";
import { objectOf, objectsOf } from "../members.ts";
import { type GeminiReadContext, PARTS_AT_ONCE, readModelParts, readUserParts } from "./read_parts.ts";

const CONTENT = new Set(["role", "parts"]);

/** Reads the system instruction as a message; none if it is empty. @throws {GatewayError} `invalid` */
export function readSystem(value: Json | undefined, context: GeminiReadContext): Message[] {
  const content = objectOf(value);
  if (content === undefined) return [];
  const blocks = readUserParts(objectsOf(content.parts), "systemInstruction.parts", context);
  return blocks.some((block) => !isEmpty(block)) ? [{ role: "system", blocks }] : [];
}

/** Reads the conversation, in steps. @throws {GatewayError} `invalid` */
export function* readContents(value: Json | undefined, context: GeminiReadContext): Generator<void, Message[]> {
  const messages: Message[] = [];
  let parts = 0;
  for (const placed of joinModelContents(objectsOf(value))) {
    const message = yield* readContent(placed, context);
    if (message !== undefined) messages.push(message);
    if ((parts += placed.parts.length) < PARTS_AT_ONCE) continue;
    parts = 0;
    yield;
  }
  return messages;
}

function* readContent(
  { content, parts, index }: PlacedContent,
  context: GeminiReadContext,
): Generator<void, Message | undefined> {
  const path = `contents[${index}].parts`;
  const byModel = content.role === "model";
  if (byModel) context.calls.beginTurn();
  const read = byModel ? yield* readModelParts(parts, path, context) : readUserParts(parts, path, context);
  const kept = read.filter((block) => !isEmpty(block));
  const blocks = kept.length > 0 ? kept : read.slice(0, 1);
  if (blocks.length === 0) return undefined;
  const unknown = collectUnknownMembers("gemini", content, { modelled: CONTENT });
  return { role: byModel ? "assistant" : "user", blocks, ...unknown };
}

/** A content with its parts and its place in the request. */
interface PlacedContent {
  content: JsonObject;
  parts: JsonObject[];
  index: number;
}

/** Joins adjacent contents of the model. The chats of `@google/genai` 3.1.0 keep each chunk of a stream as one. */
function joinModelContents(contents: readonly JsonObject[]): PlacedContent[] {
  const joined: PlacedContent[] = [];
  contents.forEach((content, index) => {
    const parts = objectsOf(content.parts);
    const last = joined.at(-1);
    if (last === undefined || last.content.role !== "model" || content.role !== "model") {
      joined.push({ content, parts: [...parts], index });
    } else {
      last.content = { ...last.content, ...content };
      appendParts(last.parts, parts);
    }
  });
  return joined;
}

/** Appends the parts of the next chunk, in which a text goes on. */
function appendParts(parts: JsonObject[], next: readonly JsonObject[]): void {
  const [first, ...others] = next;
  const last = parts.at(-1);
  if (first === undefined) return;
  if (last !== undefined && isPlainText(last) && isPlainText(first)) {
    parts.splice(-1, 1, { text: last.text + first.text });
  } else parts.push(first);
  parts.push(...others);
}

function isPlainText(part: JsonObject): part is { text: string } {
  return typeof part.text === "string" && Object.keys(part).length === 1;
}

function isEmpty(block: ContentBlock): boolean {
  return block.type === "text" && block.text === "";
}

/** Writes the arguments and results of a conversation as JSON text, in steps. */
export function writeObjects({ contents }: JsonObject): Generator<void, PrewrittenJson> {
  const objects: JsonObject[] = [];
  for (const { parts } of objectsOf(contents)) {
    for (const part of objectsOf(parts)) {
      const args = objectOf(part.functionCall)?.args;
      const response = objectOf(part.functionResponse)?.response;
      for (const object of [args, response]) if (isObject(object)) objects.push(object);
    }
  }
  return writeEach(objects);
}
