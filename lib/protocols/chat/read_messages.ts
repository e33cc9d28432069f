/** Reads the `messages` of a chat request. Each becomes one canonical message, in the same order. */
import { readCacheMark } from "../canonical/cache_mark.ts";
import { callSignatureId, chatCallSignature, readEnvelope, signatureBlock } from "../canonical/signature.ts";
import type { ContentBlock, Message } from "../canonical/types.ts";
import { type InnerNames, unknownIn } from "../canonical/unknown_members.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { ClientPermissions } from "../codec.ts";
import { objectOf, objectsOf, stringOf } from "../members.ts";
import { readContent } from "./read_parts.ts";
import { INNER_REASONING_MEMBERS, readReasoning, REASONING_MEMBERS } from "./reasoning_details.ts";

const MESSAGES_PER_STEP = 64;

/** The calls of earlier messages, which later ones refer to, and the client's permissions. */
interface ReadState {
  customCalls: Set<string>;
  /** Generated ids of `function_call`s, which have no ids, by function name. */
  functionCalls: Map<string, string>;
  /** Absent: the client may not refer to files at the vendor. */
  permissions: ClientPermissions | undefined;
}

/**
 * Reads the conversation, in steps. A tool result becomes a user message with one block.
 * @param permissions absent: the client may not refer to files at the vendor
 * @throws {GatewayError} `invalid`, for file ids, recorded audio and broken data
 */
export function* readMessages(body: JsonObject, permissions?: ClientPermissions): Generator<void, Message[]> {
  const state: ReadState = { customCalls: new Set(), functionCalls: new Map(), permissions };
  const messages: Message[] = [];
  for (const message of objectsOf(body.messages)) {
    messages.push(readMessage(message, messages.length, state));
    if (messages.length % MESSAGES_PER_STEP === 0) yield;
  }
  return messages;
}

function readMessage(message: JsonObject, index: number, state: ReadState): Message {
  switch (message.role) {
    case "assistant":
      return messageOf("assistant", message, readAssistant(message, index, state), {
        modelled: ASSISTANT_MEMBERS,
        inner: INNER_REASONING_MEMBERS,
      });
    case "tool": {
      const callId = stringOf(message.tool_call_id) ?? "";
      const result: ContentBlock = {
        type: "tool_result",
        callId,
        blocks: contentOf(message, index, state),
        ...(state.customCalls.has(callId) && { custom: true }),
      };
      return messageOf("user", message, [result], { modelled: RESULT_MEMBERS });
    }
    case "function": {
      const name = stringOf(message.name) ?? "";
      const callId = state.functionCalls.get(name) ?? functionCallId(name, index);
      const blocks = contentOf(message, index, state);
      return messageOf("user", message, [{ type: "tool_result", callId, blocks }], {
        modelled: FUNCTION_RESULT_MEMBERS,
      });
    }
    case "developer": {
      const system = messageOf("system", message, contentOf(message, index, state));
      const members = { role: "developer", ...system.unknownMembers?.members };
      return { ...system, unknownMembers: { from: "chat", members } };
    }
    default: {
      const role = message.role === "system" ? "system" : "user";
      return messageOf(role, message, contentOf(message, index, state));
    }
  }
}

/** Reads the content of a message. Most content is one text, for which no path is made. */
function contentOf({ content }: JsonObject, index: number, { permissions }: ReadState): ContentBlock[] {
  return readContent(content, typeof content === "string" ? "" : `messages[${index}].content`, permissions);
}

/** Makes a message. Its cache mark moves to the last block; without a block it stays an unknown member. */
function messageOf(
  role: Message["role"],
  message: JsonObject,
  blocks: ContentBlock[],
  { modelled = USUAL_MEMBERS, inner = {} }: { modelled?: ReadonlySet<string>; inner?: InnerNames } = {},
): Message {
  const { cache } = readCacheMark(message);
  const last = blocks.at(-1);
  if (last !== undefined && cache !== undefined) last.cache ??= cache;
  const more = last === undefined ? { cache_control: message.cache_control } : {};
  return { role, blocks, ...unknownIn("chat", message, modelled, { inner, more }) };
}

const USUAL_MEMBERS: ReadonlySet<string> = new Set(["role", "content", "cache_control"]);
const ASSISTANT_MEMBERS = new Set(
  [...USUAL_MEMBERS, ...REASONING_MEMBERS, "refusal", "audio", "tool_calls", "function_call"],
);
const RESULT_MEMBERS = new Set([...USUAL_MEMBERS, "tool_call_id"]);
const FUNCTION_RESULT_MEMBERS = new Set([...USUAL_MEMBERS, "name"]);

const CALL_MEMBERS = new Set(["id", "type", "cache_control"]);
const CUSTOM_MEMBERS = { custom: new Set(["name", "input"]) };
const FUNCTION_MEMBERS = { function: new Set(["name", "arguments"]) };
const FUNCTION_CALL_MEMBERS = new Set(["name", "arguments"]);

/** Reads an assistant message. Chat has no order within it: reasoning comes first, then text, then calls. */
function readAssistant(message: JsonObject, index: number, state: ReadState): ContentBlock[] {
  if (objectOf(message.audio) !== undefined) {
    throw new GatewayError("invalid", "Cannot use recorded audio: its id belongs to one vendor's account", {
      param: `messages[${index}].audio`,
    });
  }
  const refusal = stringOf(message.refusal);
  const blocks = readReasoning(message);
  blocks.push(...contentOf(message, index, state));
  if (refusal) blocks.push({ type: "refusal", text: refusal });
  const calls = objectsOf(message.tool_calls).flatMap((call) => readCall(call, state));
  // A client may send a signature back twice: beside the call and in `reasoning_details`.
  const known = new Set(blocks.map((block) => block.type === "reasoning" ? block.signature?.id : undefined));
  blocks.push(...calls.filter((block) => block.type !== "reasoning" || !known.has(block.signature?.id)));
  const functionCall = objectOf(message.function_call);
  if (functionCall !== undefined) blocks.push(readFunctionCall(functionCall, index, state));
  return blocks;
}

/** Reads a call, after the block of a signature that the gateway put beside it. */
function readCall(call: JsonObject, state: ReadState): ContentBlock[] {
  const value = chatCallSignature(call);
  const signature = value === undefined ? undefined : readEnvelope(value);
  if (signature === undefined) return [readSignedCall(call, state)];
  const { extra_content: _, ...others } = call;
  const id = callSignatureId(stringOf(call.id) ?? "");
  return [signatureBlock({ ...signature, id }), readSignedCall(others, state)];
}

function readSignedCall(call: JsonObject, state: ReadState): ContentBlock {
  const id = stringOf(call.id) ?? "";
  const custom = call.type === "custom";
  const inner = objectOf(custom ? call.custom : call.function) ?? {};
  if (custom) state.customCalls.add(id);
  return {
    type: "tool_call",
    id,
    name: stringOf(inner.name) ?? "",
    arguments: stringOf(custom ? inner.input : inner.arguments) ?? "",
    ...(custom && { custom }),
    ...readCacheMark(call),
    ...unknownIn("chat", call, CALL_MEMBERS, { inner: custom ? CUSTOM_MEMBERS : FUNCTION_MEMBERS }),
  };
}

function readFunctionCall(call: JsonObject, index: number, state: ReadState): ContentBlock {
  const name = stringOf(call.name) ?? "";
  const id = functionCallId(name, index);
  state.functionCalls.set(name, id);
  return {
    type: "tool_call",
    id,
    name,
    arguments: stringOf(call.arguments) ?? "",
    ...unknownIn("chat", call, FUNCTION_CALL_MEMBERS),
  };
}

/** Returns a call id. It is the same whenever the conversation is sent, because prompt caches depend on it. */
function functionCallId(name: string, index: number): string {
  return `call_${index}_${name}`;
}
