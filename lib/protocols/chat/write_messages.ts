/** Writes the `messages` of a chat request. */
import { callSignatures, signedCallId } from "../canonical/signature.ts";
import type { ContentBlock, ContentBlockOf, Message } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { JsonObject } from "../../json/mod.ts";
import { stringOf } from "../members.ts";
import {
  type ChatWriteContext,
  isPlain,
  withMembers,
  withUnknownMembers,
  writeCall,
  writeContent,
  writePart,
} from "./write_parts.ts";
import { writePastReasoning } from "./reasoning_details.ts";

/** Blocks written in one step. */
const BLOCKS_PER_STEP = 1_024;

/**
 * Writes the messages, in steps. Tool results become messages of their own, before the other content of their message.
 */
export function* writeMessages(context: ChatWriteContext): Generator<void, JsonObject[]> {
  const written: JsonObject[] = [];
  let blocksSinceYield = 0;
  for (const message of context.prompt.messages) {
    if ((blocksSinceYield += message.blocks.length) >= BLOCKS_PER_STEP) {
      blocksSinceYield = 0;
      yield;
    }
    if (message.role === "assistant") written.push(writeAssistant(message, context));
    else if (message.role === "user") written.push(...writeUser(message, context));
    else written.push(writeSystem(message, context));
  }
  return written;
}

/** Writes a system message. The role of a client's `developer` message is among its unknown members. */
function writeSystem(message: Message, context: ChatWriteContext): JsonObject {
  return withMembers({ role: "system", content: writeContent(message.blocks, context) }, message);
}

function writeUser(message: Message, context: ChatWriteContext): JsonObject[] {
  const own = ownMembers(message);
  const messages: JsonObject[] = [];
  const others: ContentBlock[] = [];
  for (const block of message.blocks) {
    if (block.type === "tool_result") messages.push(writeResult(block, context));
    else others.push(block);
  }
  // A single result was a message of its own, so the unknown members are those of that message.
  if (messages.length === 1 && others.length === 0) return messages.map((message) => withUnknownMembers(message, own));
  if (messages.length > 0 && others.length === 0 && Object.keys(own).length === 0) return messages;
  return [...messages, withUnknownMembers({ role: "user", content: writeContent(others, context) }, own)];
}

function writeResult(result: ContentBlockOf<"tool_result">, context: ChatWriteContext): JsonObject {
  const parts = result.blocks.map((block) => writePart(block, context));
  const isPlainText = parts.every(isPlain);
  // Chat has no flag for a failed tool.
  const errorMark = result.isError === true ? "[tool error] " : "";
  const joined = parts.map((part) => stringOf(part.text) ?? "").join("\n");
  const marked = errorMark === "" ? parts : [{ type: "text", text: errorMark.trim() }, ...parts];
  const content = !isPlainText ? marked : joined === "" ? errorMark.trimEnd() : errorMark + joined;
  return withMembers({ role: "tool", tool_call_id: result.callId, content }, result);
}

/** Writes an assistant message. Chat has no order between text and calls. */
function writeAssistant(message: Message, context: ChatWriteContext): JsonObject {
  const visible: ContentBlock[] = [];
  const refusals: string[] = [];
  const calls: JsonObject[] = [];
  const reasoning: ContentBlock[] = [];
  const { blocks } = message;
  const signatures = callSignatures(blocks, context.target.issuer);
  const callIds = new Set(blocks.map((block) => block.type === "tool_call" ? block.id : undefined));
  for (const block of blocks) {
    const signedCall = block.type === "reasoning" ? signedCallId(block.signature?.id) : undefined;
    if (block.type === "tool_call") calls.push(withMembers(writeCall(block, signatures.get(block.id)), block));
    else if (signedCall !== undefined && signatures.has(signedCall) && callIds.has(signedCall)) continue;
    else if (block.type === "refusal") refusals.push(block.text);
    else if (block.type === "reasoning" || isDetail(block)) reasoning.push(block);
    else visible.push(block);
  }
  const parts = visible.map((block) => writePart(block, context));
  // Texts of one answer follow each other without a separator.
  const joined = parts.every(isPlain) ? parts.map((part) => stringOf(part.text) ?? "").join("") : parts;
  const isEmpty = joined.length === 0 && (calls.length > 0 || refusals.length > 0);
  const written: JsonObject = {
    role: "assistant",
    content: isEmpty ? null : joined,
    ...writePastReasoning(reasoning, context),
    ...(refusals.length > 0 && { refusal: refusals.join("\n") }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return withMembers(written, message);
}

/** True for an unknown entry of `reasoning_details`, which returns to that member. */
function isDetail(block: ContentBlock): boolean {
  return block.type === "vendor_specific" && stringOf(block.value.type)?.startsWith("reasoning.") === true;
}
