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
  writeContent,
  writePart,
} from "./write_parts.ts";
import { writePastReasoning } from "./reasoning_details.ts";

/** Blocks written in one step. */
const BLOCKS_AT_ONCE = 1_024;

/** Writes the conversation, in steps. Tool results become messages of their own, before the other content of their message. */
export function* writeMessages(context: ChatWriteContext): Generator<void, JsonObject[]> {
  const messages: JsonObject[] = [];
  let blocks = 0;
  for (const message of context.prompt.messages) {
    if ((blocks += message.blocks.length) >= BLOCKS_AT_ONCE) {
      blocks = 0;
      yield;
    }
    if (message.role === "assistant") messages.push(writeAssistant(message, context));
    else if (message.role === "user") messages.push(...writeUser(message, context));
    else messages.push(writeSystem(message, context));
  }
  return messages;
}

/** A client's `developer` message keeps its role among the unknown members. */
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
  // A lone result was a message of its own, and so are its unknown members.
  if (messages.length === 1 && others.length === 0) return messages.map((message) => withUnknownMembers(message, own));
  if (messages.length > 0 && others.length === 0 && Object.keys(own).length === 0) return messages;
  return [...messages, withUnknownMembers({ role: "user", content: writeContent(others, context) }, own)];
}

function writeResult(result: ContentBlockOf<"tool_result">, context: ChatWriteContext): JsonObject {
  const parts = result.blocks.map((block) => writePart(block, context));
  const plain = parts.every(isPlain);
  // Chat has no flag for a failed tool.
  const mark = result.isError === true ? "[tool error] " : "";
  const joined = parts.map((part) => stringOf(part.text) ?? "").join("\n");
  const marked = mark === "" ? parts : [{ type: "text", text: mark.trim() }, ...parts];
  const content = !plain ? marked : joined === "" ? mark.trimEnd() : mark + joined;
  return withMembers({ role: "tool", tool_call_id: result.callId, content }, result);
}

/** Writes one message: chat has no order between text and calls. */
function writeAssistant(message: Message, context: ChatWriteContext): JsonObject {
  const visible: ContentBlock[] = [];
  const refusals: string[] = [];
  const calls: JsonObject[] = [];
  const reasoning: ContentBlock[] = [];
  const { blocks } = message;
  const signatures = callSignatures(blocks, context.target.issuer);
  const callIds = new Set(blocks.map((block) => block.type === "tool_call" ? block.id : undefined));
  for (const block of blocks) {
    const signed = block.type === "reasoning" ? signedCallId(block.signature?.id) : undefined;
    if (block.type === "tool_call") calls.push(writeCall(block, signatures.get(block.id)));
    else if (signed !== undefined && signatures.has(signed) && callIds.has(signed)) continue;
    else if (block.type === "refusal") refusals.push(block.text);
    else if (block.type === "reasoning" || isDetail(block)) reasoning.push(block);
    else visible.push(block);
  }
  const parts = visible.map((block) => writePart(block, context));
  // Text that was streamed as one is joined without a separator.
  const joined = parts.every(isPlain) ? parts.map((part) => stringOf(part.text) ?? "").join("") : parts;
  const isEmpty = joined.length === 0 && (calls.length > 0 || refusals.length > 0);
  const wireMessage: JsonObject = {
    role: "assistant",
    content: isEmpty ? null : joined,
    ...writePastReasoning(reasoning, context),
    ...(refusals.length > 0 && { refusal: refusals.join("\n") }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return withMembers(wireMessage, message);
}

/** True for an unknown entry of `reasoning_details`, which returns to its place. */
function isDetail(block: ContentBlock): boolean {
  return block.type === "vendor_specific" && stringOf(block.value.type)?.startsWith("reasoning.") === true;
}

function writeCall(call: ContentBlockOf<"tool_call">, signature: string | undefined): JsonObject {
  const { id, name, custom, arguments: input } = call;
  const wireCall = custom === true
    ? { id, type: "custom", custom: { name, input } }
    : { id, type: "function", function: { name, arguments: input.trim() === "" ? "{}" : input } };
  const signed = signature === undefined
    ? wireCall
    : { ...wireCall, extra_content: { google: { thought_signature: signature } } };
  return withMembers(signed, call);
}
