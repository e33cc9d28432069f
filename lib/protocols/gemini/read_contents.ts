/** Reads the system instruction and the contents of a request as messages. */
import type { ContentBlock, Message } from "../canonical/types.ts";
import { unknownIn } from "../canonical/unknown_members.ts";
import { isObject, type Json, type JsonObject, writeEach } from "../../json/mod.ts";
import type { PrewrittenJson } from "../codec.ts";
import { objectOf, objectsOf } from "../members.ts";
import { type GeminiReadContext, PARTS_PER_STEP, readModelParts, readUserParts } from "./read_parts.ts";

const CONTENT_MEMBERS = new Set(["role", "parts"]);

/**
 * Reads the system instruction as a message; returns an empty list if it is empty.
 * @throws {GatewayError} `invalid`, for parts that cannot be read
 */
export function readSystem(value: Json | undefined, context: GeminiReadContext): Message[] {
  const content = objectOf(value);
  if (content === undefined) return [];
  const blocks = readUserParts(objectsOf(content.parts), "systemInstruction.parts", context);
  return blocks.some((block) => !isEmpty(block)) ? [{ role: "system", blocks }] : [];
}

/** Reads the contents, in steps. @throws {GatewayError} `invalid`, for parts that cannot be read */
export function* readContents(value: Json | undefined, context: GeminiReadContext): Generator<void, Message[]> {
  const messages: Message[] = [];
  let partsSinceYield = 0;
  for (const joined of joinModelContents(objectsOf(value))) {
    const message = yield* readContent(joined, context);
    if (message !== undefined) messages.push(message);
    if ((partsSinceYield += joined.parts.length) < PARTS_PER_STEP) continue;
    partsSinceYield = 0;
    yield;
  }
  return messages;
}

function* readContent(
  { content, parts, index }: JoinedContent,
  context: GeminiReadContext,
): Generator<void, Message | undefined> {
  const path = `contents[${index}].parts`;
  const isModel = content.role === "model";
  if (isModel) context.calls.beginTurn();
  const read = isModel ? yield* readModelParts(parts, path, context) : readUserParts(parts, path, context);
  const kept = read.filter((block) => !isEmpty(block));
  const blocks = kept.length > 0 ? kept : read.slice(0, 1);
  if (blocks.length === 0) return undefined;
  const unknown = unknownIn("gemini", content, CONTENT_MEMBERS);
  return { role: isModel ? "assistant" : "user", blocks, ...unknown };
}

/** A content, with its parts and its index in the request. */
interface JoinedContent {
  content: JsonObject;
  parts: JsonObject[];
  index: number;
}

/** Joins adjacent contents of the model. Chats of `@google/genai` 3.1.0 store each chunk of a stream as a content. */
function joinModelContents(contents: readonly JsonObject[]): JoinedContent[] {
  const joined: JoinedContent[] = [];
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

/** Appends the parts of the next chunk. A text may continue in it. */
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

/** Writes the arguments and results of all calls as JSON text, in steps. */
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
