/** Reads the `messages` of a chat request, one message for each, in the same order. */
import { readCacheMark } from "../canonical/cache_mark.ts";
import type { ContentBlock, Message, UnknownMembers } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { Permits } from "../codec.ts";
import { objectOf, objectsOf, stringOf } from "../members.ts";
import { unknownIn } from "./members.ts";
import { readContent } from "./read_parts.ts";
import { readReasoning, REASONING_MEMBERS } from "./reasoning_details.ts";

/** Messages read in one step. */
const MESSAGES_AT_ONCE = 64;

/** Facts about earlier calls that later messages need. */
interface Calls {
  /** Ids of custom tool calls. */
  custom: Set<string>;
  /** Generated ids of `function_call`s, which have none, by function name. */
  functions: Map<string, string>;
  /** Absent: no files that the vendor keeps. */
  permits: Permits | undefined;
}

/**
 * Reads the conversation, in steps. A tool result becomes a user message with one block.
 * @param permits absent: no files that the vendor keeps
 * @throws {GatewayError} `invalid`, for file ids, recorded audio and broken data
 */
export function* readMessages(body: JsonObject, permits?: Permits): Generator<void, Message[]> {
  const calls: Calls = { custom: new Set(), functions: new Map(), permits };
  const messages: Message[] = [];
  for (const message of objectsOf(body.messages)) {
    messages.push(readMessage(message, messages.length, calls));
    if (messages.length % MESSAGES_AT_ONCE === 0) yield;
  }
  return messages;
}

function readMessage(message: JsonObject, index: number, calls: Calls): Message {
  switch (message.role) {
    case "assistant":
      return messageOf("assistant", message, readAssistant(message, index, calls), ASSISTANT);
    case "tool": {
      const callId = stringOf(message.tool_call_id) ?? "";
      const result: ContentBlock = {
        type: "tool_result",
        callId,
        blocks: contentOf(message, index, calls),
        ...(calls.custom.has(callId) && { custom: true }),
      };
      return messageOf("user", message, [result], RESULT);
    }
    case "function": {
      const name = stringOf(message.name) ?? "";
      const callId = calls.functions.get(name) ?? functionCallId(name, index);
      const blocks = contentOf(message, index, calls);
      return messageOf("user", message, [{ type: "tool_result", callId, blocks }], FUNCTION_RESULT);
    }
    case "developer": {
      const system = messageOf("system", message, contentOf(message, index, calls), USUAL);
      const unknownMembers: UnknownMembers = {
        from: "chat",
        members: { role: "developer", ...system.unknownMembers?.members },
      };
      return { ...system, unknownMembers };
    }
    default:
      return messageOf(
        message.role === "system" ? "system" : "user",
        message,
        contentOf(message, index, calls),
        USUAL,
      );
  }
}

/** Most content is one text and needs no path. */
function contentOf({ content }: JsonObject, index: number, { permits }: Calls): ContentBlock[] {
  return readContent(content, typeof content === "string" ? "" : `messages[${index}].content`, permits);
}

/** A cache mark of the message belongs to its last block; without a block it stays an unknown member. */
function messageOf(role: Message["role"], message: JsonObject, blocks: ContentBlock[], read: Members): Message {
  const { cache } = readCacheMark(message);
  const last = blocks.at(-1);
  if (last !== undefined && cache !== undefined) last.cache ??= cache;
  const { unknownMembers } = unknownIn(message, last === undefined ? read.bare : read.marked);
  return unknownMembers === undefined ? { role, blocks } : { role, blocks, unknownMembers };
}

/** Names of read members, with and without the cache mark. */
interface Members {
  bare: ReadonlySet<string>;
  marked: ReadonlySet<string>;
}

function membersWith(...names: string[]): Members {
  const bare = new Set(["role", "content", ...names]);
  return { bare, marked: new Set([...bare, "cache_control"]) };
}

const USUAL = membersWith();
const ASSISTANT = membersWith(...REASONING_MEMBERS, "refusal", "audio", "tool_calls", "function_call");
const RESULT = membersWith("tool_call_id");
const FUNCTION_RESULT = membersWith("name");

const CALL = new Set(["id", "type", "cache_control"]);
const IN_CUSTOM = { custom: new Set(["name", "input"]) };
const IN_FUNCTION = { function: new Set(["name", "arguments"]) };
const FUNCTION_CALL = new Set(["name", "arguments"]);

/** Chat has no order within an assistant message: reasoning comes first, then text, then calls. */
function readAssistant(message: JsonObject, index: number, calls: Calls): ContentBlock[] {
  if (objectOf(message.audio) !== undefined) {
    throw new GatewayError("invalid", "Cannot use recorded audio: its id belongs to one vendor's account", {
      param: `messages[${index}].audio`,
    });
  }
  const refusal = stringOf(message.refusal);
  const blocks = readReasoning(message);
  blocks.push(...contentOf(message, index, calls));
  if (refusal) blocks.push({ type: "refusal", text: refusal });
  for (const call of objectsOf(message.tool_calls)) blocks.push(readCall(call, calls));
  const functionCall = objectOf(message.function_call);
  if (functionCall !== undefined) blocks.push(readFunctionCall(functionCall, index, calls));
  return blocks;
}

function readCall(call: JsonObject, calls: Calls): ContentBlock {
  const id = stringOf(call.id) ?? "";
  if (call.type === "custom") {
    const custom = objectOf(call.custom) ?? {};
    calls.custom.add(id);
    return {
      type: "tool_call",
      id,
      name: stringOf(custom.name) ?? "",
      arguments: stringOf(custom.input) ?? "",
      custom: true,
      ...readCacheMark(call),
      ...unknownIn(call, CALL, IN_CUSTOM),
    };
  }
  const inner = objectOf(call.function) ?? {};
  return {
    type: "tool_call",
    id,
    name: stringOf(inner.name) ?? "",
    arguments: stringOf(inner.arguments) ?? "",
    ...readCacheMark(call),
    ...unknownIn(call, CALL, IN_FUNCTION),
  };
}

function readFunctionCall(call: JsonObject, index: number, calls: Calls): ContentBlock {
  const name = stringOf(call.name) ?? "";
  const id = functionCallId(name, index);
  calls.functions.set(name, id);
  return {
    type: "tool_call",
    id,
    name,
    arguments: stringOf(call.arguments) ?? "",
    ...unknownIn(call, FUNCTION_CALL),
  };
}

/** The id must be the same whenever the conversation is sent: prompt caches depend on it. */
function functionCallId(name: string, index: number): string {
  return `call_${index}_${name}`;
}
