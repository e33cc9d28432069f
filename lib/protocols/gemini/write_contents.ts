import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { ContentBlock, ContentBlockOf, Message, Prompt } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { BLOCKS_AT_ONCE, writeModelParts } from "./write_model_parts.ts";
import { objectOf, ownMembers } from "./members.ts";
import { writeMedia } from "./write_media.ts";
import { writeResponse } from "./write_function_responses.ts";

/** First user message of a conversation that does not begin with the user, which Gemini refuses. */
const OPENING = "(continued)";

/** One message. */
interface Content {
  role: "user" | "model";
  parts: JsonObject[];
}

/**
 * Writes the messages, in steps: leading system messages are the instruction, all others alternate between `user` and `model`.
 * Later system messages become marked user text.
 * @throws {GatewayError} `invalid`, for a result without a call
 */
export function* writeContents(
  prompt: Prompt,
  target: WriteTarget,
): Generator<void, { system: JsonObject[]; contents: JsonObject[] }> {
  const first = prompt.messages.findIndex(({ role }) => role !== "system");
  const leading = first < 0 ? prompt.messages.length : first;
  const system: JsonObject[] = [];
  for (const { blocks } of prompt.messages.slice(0, leading)) {
    system.push(...yield* writeUserParts(blocks, { prompt, target }));
  }

  const names = new Map<string, string>();
  const contents: Content[] = [];
  for (const message of prompt.messages.slice(leading)) {
    const parts = yield* writeParts(message, { prompt, target, names });
    if (parts.length === 0) continue;
    const role = message.role === "assistant" ? "model" : "user";
    const last = contents.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else contents.push({ role, parts });
  }
  if (contents[0]?.role !== "user") contents.unshift({ role: "user", parts: [{ text: OPENING }] });
  return { system, contents: contents.map(({ role, parts }) => ({ role, parts: resultsFirst(parts) })) };
}

interface WriteContext {
  prompt: Prompt;
  target: WriteTarget;
  /** Names of called tools by call id: a result needs the name, too. */
  names?: Map<string, string>;
}

function* writeParts({ role, blocks }: Message, context: WriteContext): Generator<void, JsonObject[]> {
  if (role === "user") return yield* writeUserParts(blocks, context);
  if (role === "system") {
    return (yield* writeUserParts(blocks, context)).map((part) =>
      typeof part.text === "string" ? { text: `<system>\n${part.text}\n</system>` } : part
    );
  }
  for (const block of blocks) {
    if (block.type === "tool_call") context.names?.set(block.id, block.name);
  }
  return yield* writeModelParts(blocks, context);
}

function* writeUserParts(blocks: readonly ContentBlock[], context: WriteContext): Generator<void, JsonObject[]> {
  const parts: JsonObject[] = [];
  for (const [index, block] of blocks.entries()) {
    if (index % BLOCKS_AT_ONCE === 0) yield;
    const part = writeUserPart(block, context);
    if (part !== undefined) parts.push(part);
  }
  return parts;
}

function writeUserPart(block: ContentBlock, context: WriteContext): JsonObject | undefined {
  const { prompt, target: { dropped } } = context;
  if (block.cache !== undefined) dropped.add("cache_control");
  switch (block.type) {
    case "text":
    case "refusal":
      return block.text === "" ? undefined : { text: block.text, ...ownMembers(block.unknownMembers) };
    case "media":
      if (block.name !== undefined) dropped.add(PARAMETER_NAMES[prompt.protocol].fileName);
      return { ...writeMedia(block.media), ...ownMembers(block.unknownMembers) };
    case "tool_result":
      return writeResult(block, context);
    case "vendor_specific":
      if (block.from === "gemini") return block.value;
      dropped.add(PARAMETER_NAMES[prompt.protocol].messages);
      return undefined;
    default:
      return undefined;
  }
}

function writeResult(block: ContentBlockOf<"tool_result">, { prompt, names }: WriteContext): JsonObject {
  const name = names?.get(block.callId);
  if (name === undefined) {
    throw new GatewayError("invalid", `Cannot send the result of call "${block.callId}": there is no such call`, {
      param: PARAMETER_NAMES[prompt.protocol].messages,
    });
  }
  const { functionResponse, ...others } = ownMembers(block.unknownMembers);
  return {
    functionResponse: { id: block.callId, name, ...writeResponse(block), ...objectOf(functionResponse) },
    ...others,
  };
}

/** Results directly follow their calls, before other user content. */
function resultsFirst(parts: JsonObject[]): JsonObject[] {
  const isResult = (part: JsonObject) => part.functionResponse !== undefined;
  return [...parts.filter(isResult), ...parts.filter((part) => !isResult(part))];
}
