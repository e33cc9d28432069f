/** Writes the messages of a request as instructions and input items. */
import type { ContentBlock, ContentBlockOf, Message } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { objectOf, present } from "../members.ts";
import { isPart, type MessageAuthor, type ResponsesWriteContext, writePart } from "./write_parts.ts";

const BLOCKS_PER_STEP = 1_024;

/** Prefix of the output of a failed tool. The protocol has no flag for it. */
const ERROR_MARK = "[tool error]";

/**
 * Separates leading system text from the conversation: the first message for clients of this protocol, all leading
 * system messages for others. Messages with other content than text stay items. So does text without messages after it,
 * because a request needs an input.
 */
export function splitInstructions(
  messages: readonly Message[],
  context: ResponsesWriteContext,
): { instructions?: string; others: readonly Message[] } {
  let count = 0;
  while (count < (context.own ? 1 : messages.length)) {
    const message = messages[count];
    if (message === undefined || !isPlain(message, context)) break;
    count++;
  }
  if (count === 0 || count === messages.length) return { others: messages };
  const texts = messages.slice(0, count).map(({ blocks }) =>
    blocks.flatMap((block) => block.type === "text" ? [block.text] : []).join("\n")
  );
  return { instructions: texts.join("\n\n"), others: messages.slice(count) };
}

/**
 * Writes messages as items, in steps. The blocks keep their order.
 * @throws {GatewayError} `invalid`, for media that the protocol does not support
 */
export function* writeInput(
  messages: readonly Message[],
  context: ResponsesWriteContext,
): Generator<void, JsonObject[]> {
  const items: JsonObject[] = [];
  for (const message of messages) yield* writeMessage(message, { context, items });
  return items;
}

function isPlain({ role, blocks, unknownMembers }: Message, { own }: ResponsesWriteContext): boolean {
  if (role !== "system") return false;
  if (!own) return blocks.every((block) => block.type === "text" && block.citations === undefined);
  const [block] = blocks;
  return unknownMembers === undefined && blocks.length === 1 && block?.type === "text" && isPlainText(block);
}

/** True for a text block without other members. */
function isPlainText(block: ContentBlock): boolean {
  return block.type === "text" && block.unknownMembers === undefined && block.cache === undefined &&
    block.citations === undefined;
}

/** Appends a message to the items. Adjacent parts are one item, unless a part began an item of its own. */
function* writeMessage(
  message: Message,
  { context, items }: { context: ResponsesWriteContext; items: JsonObject[] },
): Generator<void, void> {
  const author: MessageAuthor = message.role === "assistant" ? "model" : "others";
  let content: JsonObject[] | undefined;
  for (const [index, block] of message.blocks.entries()) {
    if (index % BLOCKS_PER_STEP === 0) yield;
    if (!isPart(block)) {
      content = undefined;
      items.push(writeItem(block, context));
      continue;
    }
    const parts = writePart(block, author, context);
    const itemMembers = objectOf(ownMembers(block).item);
    if (content === undefined || itemMembers !== undefined) {
      if (parts.length === 0) continue;
      content = [];
      const role = roleOf(message, context);
      items.push({ ...ownMembers(message), ...itemMembers, type: "message", role, content });
    }
    content.push(...parts);
  }
}

/** Returns the role of a message. Current models expect system text in the role `developer`. */
function roleOf(message: Message, { own }: ResponsesWriteContext): Json {
  if (message.role !== "system") return message.role;
  return own ? ownMembers(message).role ?? message.role : "developer";
}

function writeItem(block: ContentBlock, context: ResponsesWriteContext): JsonObject {
  switch (block.type) {
    case "tool_call":
      return writeCall(block, context);
    case "tool_result":
      return writeResult(block, context);
    case "reasoning":
      return writeReasoning(block, context);
    case "vendor_specific":
      return block.value;
    default:
      throw new TypeError(`Cannot write a block of type "${block.type}" as an item`);
  }
}

function writeCall(block: ContentBlockOf<"tool_call">, context: ResponsesWriteContext): JsonObject {
  const { id, name, namespace, custom, arguments: input } = block;
  return {
    ...ownMembers(block),
    ...(custom === true
      ? { type: "custom_tool_call", call_id: id, name, input }
      : { type: "function_call", call_id: id, name, arguments: context.own || input.trim() !== "" ? input : "{}" }),
    ...present({ namespace }),
  };
}

function writeResult(block: ContentBlockOf<"tool_result">, context: ResponsesWriteContext): JsonObject {
  // In other protocols a result does not show that its tool is custom.
  const custom = block.custom === true || (!context.own && context.customCalls.has(block.callId));
  return {
    ...ownMembers(block),
    type: custom ? "custom_tool_call_output" : "function_call_output",
    call_id: block.callId,
    output: writeOutput(block, context),
  };
}

/** Writes the output of a tool. It is a string if possible, because some upstreams do not accept parts. */
function writeOutput({ blocks, isError }: ContentBlockOf<"tool_result">, context: ResponsesWriteContext): Json {
  if (context.own) {
    const [first] = blocks;
    if (first === undefined) return "";
    if (blocks.length === 1 && first.type === "text" && isPlainText(first)) return first.text;
  }
  const texts = blocks.filter((block) => block.type === "text");
  if (!context.own && texts.length === blocks.length) {
    const text = texts.map(({ text }) => text).join("\n");
    return (isError === true ? `${ERROR_MARK} ${text}` : text).trimEnd();
  }
  const parts = blocks.flatMap((block) => isPart(block) ? writePart(block, "others", context) : []);
  return isError === true ? [{ type: "input_text", text: ERROR_MARK }, ...parts] : parts;
}

function writeReasoning(block: ContentBlockOf<"reasoning">, { own }: ResponsesWriteContext): JsonObject {
  const { signature } = block;
  const { id: itemId, summary, content, ...members } = ownMembers(block);
  const id = signature?.id ?? itemId;
  const rawContent = signature === undefined && !own && block.text !== ""
    ? [{ type: "reasoning_text", text: block.text }]
    : content;
  const ownSummary = rawContent !== undefined || block.text === "" ? [] : [{ type: "summary_text", text: block.text }];
  return {
    ...members,
    type: "reasoning",
    ...present({ id }),
    summary: Array.isArray(summary) ? summary : ownSummary,
    ...present({ content: rawContent, encrypted_content: signature?.value }),
  };
}
