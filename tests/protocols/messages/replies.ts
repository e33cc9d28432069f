/** Answers in the canonical form, each with the message object it is in this protocol. */
import type { Prompt, Reply } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { ResponseContext } from "../../../lib/protocols/codec.ts";

/** One answer: the request, the reply, and the written message. */
export interface ReplyCase {
  name: string;
  reply: Reply;
  /** Members of the prompt that matter to it. */
  prompt?: Partial<Prompt>;
  /** The written message, without members that are the same in all. */
  content: JsonObject[];
  stop_reason: string;
  usage?: JsonObject;
}

/** The members of a request that its answer repeats. */
export function responseContextOf(prompt: Partial<Prompt> = {}): ResponseContext {
  const request = { model: "a/b", max_tokens: 10, messages: [] };
  return {
    requestId: "r1",
    createdAt: 1,
    model: "a/b",
    request,
    prompt: {
      protocol: "messages",
      model: "a/b",
      messages: [],
      tools: [],
      stop: [],
      sampling: {},
      stream: true,
      ...prompt,
    },
  };
}

const OMITTED: Partial<Prompt> = { reasoning: { mode: "adaptive", display: "omitted" } };
const SIGNED = { issuer: "anthropic", value: "c2ln" };
const NO_TOKENS: JsonObject = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens: 0,
  service_tier: "standard",
};

/** The message object that a case describes. */
export function expectedMessage({ content, stop_reason, usage }: ReplyCase): JsonObject {
  return {
    id: "msg_r1",
    type: "message",
    role: "assistant",
    model: "a/b",
    content,
    stop_reason,
    stop_sequence: null,
    usage: usage ?? NO_TOKENS,
  };
}

/** Every shape an answer can have. */
export const REPLIES: readonly ReplyCase[] = [
  {
    name: "text and usage",
    reply: {
      id: "up_1",
      blocks: [{ type: "text", text: "Hi 👋\n" }],
      finish: "end",
      usage: {
        prompt: 7,
        input_cache_read: 5,
        input_cache_write_5m: 3,
        input_cache_write_1h: 2,
        completion: 4,
        reasoning: 1,
      },
    },
    content: [{ type: "text", text: "Hi 👋\n" }],
    stop_reason: "end_turn",
    usage: {
      input_tokens: 7,
      cache_creation_input_tokens: 5,
      cache_read_input_tokens: 5,
      cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 2 },
      output_tokens: 4,
      output_tokens_details: { thinking_tokens: 1 },
      service_tier: "standard",
    },
  },
  {
    name: "empty blocks",
    reply: {
      blocks: [{ type: "text", text: "" }, { type: "reasoning", text: "" }, { type: "text", text: "a" }],
      finish: "end",
      usage: {},
    },
    content: [{ type: "text", text: "a" }],
    stop_reason: "end_turn",
  },
  {
    name: "redacted reasoning",
    reply: {
      blocks: [{
        type: "reasoning",
        text: "",
        hidden: true,
        signature: { ...SIGNED, id: "redacted" },
      }, { type: "text", text: "a" }],
      finish: "end",
      usage: {},
    },
    content: [{ type: "redacted_thinking", data: "c2ln" }, { type: "text", text: "a" }],
    stop_reason: "end_turn",
  },
  {
    name: "omitted thinking keeps its signature",
    prompt: OMITTED,
    reply: {
      blocks: [
        { type: "reasoning", text: "Hm.", signature: SIGNED },
        { type: "reasoning", text: "Unsigned." },
        { type: "text", text: "Yes." },
      ],
      finish: "end",
      usage: {},
    },
    content: [{ type: "thinking", thinking: "", signature: "c2ln" }, { type: "text", text: "Yes." }],
    stop_reason: "end_turn",
  },
  {
    name: "a refusal that ended as usual",
    reply: { blocks: [{ type: "refusal", text: "I cannot." }], finish: "end", usage: {} },
    content: [{ type: "text", text: "I cannot." }],
    stop_reason: "refusal",
  },
  {
    name: "a vendor's own blocks and citations, and not those of another protocol",
    reply: {
      blocks: [
        {
          type: "vendor_specific",
          from: "messages",
          value: { type: "server_tool_use", id: "s1", name: "w", input: { q: 1 } },
        },
        { type: "vendor_specific", from: "responses", value: { type: "web_search_call", id: "ws_1" } },
        {
          type: "text",
          text: "So",
          citations: [
            { from: "messages", value: { type: "char_location", cited_text: "x" } },
            { from: "chat", value: { type: "url_citation" } },
            { from: "messages", value: { type: "char_location", cited_text: "y" } },
          ],
        },
      ],
      finish: "pause",
      usage: {},
    },
    content: [
      { type: "server_tool_use", id: "s1", name: "w", input: { q: 1 } },
      {
        type: "text",
        text: "So",
        citations: [{ type: "char_location", cited_text: "x" }, { type: "char_location", cited_text: "y" }],
      },
    ],
    stop_reason: "pause_turn",
  },
];
