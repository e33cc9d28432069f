/** Short constructors of prompts and messages. */
import type { ContentBlock, Message, Prompt } from "../../../lib/protocols/canonical/types.ts";

/** A prompt of the chat protocol with only messages by default. */
export function promptOf(messages: Message[], more: Partial<Prompt> = {}): Prompt {
  return { protocol: "chat", model: "test/model", messages, tools: [], stop: [], sampling: {}, stream: false, ...more };
}

/** A user message of texts and blocks. */
export function user(...parts: (string | ContentBlock)[]): Message {
  return { role: "user", blocks: parts.map(toBlock) };
}

/** An assistant message of texts and blocks. */
export function assistant(...parts: (string | ContentBlock)[]): Message {
  return { role: "assistant", blocks: parts.map(toBlock) };
}

/** A system message. */
export function system(text: string): Message {
  return { role: "system", blocks: [{ type: "text", text }] };
}

/** A call of a tool. */
export function call(id: string, name = "tool"): ContentBlock {
  return { type: "tool_call", id, name, arguments: "{}" };
}

/** The result of a call. */
export function result(callId: string, ...parts: (string | ContentBlock)[]): ContentBlock {
  return { type: "tool_result", callId, blocks: parts.map(toBlock) };
}

/** A text block. */
export function text(text: string): ContentBlock {
  return { type: "text", text };
}

function toBlock(content: string | ContentBlock): ContentBlock {
  return typeof content === "string" ? text(content) : content;
}
