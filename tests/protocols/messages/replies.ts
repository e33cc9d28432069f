/** Answers in the canonical form, each with the message object it is in this protocol. */
import type { Prompt, Reply } from "../../../lib/protocols/canonical/types.ts";
import { type JsonObject, parseJson } from "../../../lib/json/mod.ts";
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
  stop_sequence?: string;
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
export function expectedMessage({ content, stop_reason, stop_sequence, usage }: ReplyCase): JsonObject {
  return {
    id: "msg_r1",
    type: "message",
    role: "assistant",
    model: "a/b",
    content,
    stop_reason,
    stop_sequence: stop_sequence ?? null,
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
  { name: "nothing", reply: { blocks: [], finish: "end", usage: {} }, content: [], stop_reason: "end_turn" },
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
    name: "one tool call with exact numbers",
    reply: {
      blocks: [{ type: "tool_call", id: "call_1", name: "f", arguments: '{"id":9007199254740993,"x":1.0}' }],
      finish: "tool_use",
      usage: {},
    },
    content: [{ type: "tool_use", id: "call_1", name: "f", input: parseJson('{"id":9007199254740993,"x":1.0}') }],
    stop_reason: "tool_use",
  },
  {
    name: "parallel tool calls around text",
    reply: {
      blocks: [
        { type: "text", text: "Looking." },
        { type: "tool_call", id: "c1", name: "f", arguments: '{"a":[1,{"b":null}]}' },
        { type: "text", text: "And:" },
        { type: "tool_call", id: "c2", name: "g", arguments: "{}" },
      ],
      finish: "tool_use",
      usage: {},
    },
    content: [
      { type: "text", text: "Looking." },
      { type: "tool_use", id: "c1", name: "f", input: { a: [1, { b: null }] } },
      { type: "text", text: "And:" },
      { type: "tool_use", id: "c2", name: "g", input: {} },
    ],
    stop_reason: "tool_use",
  },
  {
    name: "a custom tool call",
    reply: {
      blocks: [{ type: "tool_call", id: "c1", name: "patch", arguments: 'say "hi"\n\\ 👋', custom: true }],
      finish: "tool_use",
      usage: {},
    },
    content: [{ type: "tool_use", id: "c1", name: "patch", input: { input: 'say "hi"\n\\ 👋' } }],
    stop_reason: "tool_use",
  },
  {
    name: "an empty custom tool call",
    reply: {
      blocks: [{ type: "tool_call", id: "c1", name: "patch", arguments: "", custom: true }],
      finish: "tool_use",
      usage: {},
    },
    content: [{ type: "tool_use", id: "c1", name: "patch", input: { input: "" } }],
    stop_reason: "tool_use",
  },
  {
    name: "signed reasoning",
    reply: {
      blocks: [{ type: "reasoning", text: "Hm.", signature: SIGNED }, { type: "text", text: "Yes." }],
      finish: "end",
      usage: {},
    },
    content: [{ type: "thinking", thinking: "Hm.", signature: "c2ln" }, { type: "text", text: "Yes." }],
    stop_reason: "end_turn",
  },
  {
    name: "unsigned reasoning",
    reply: { blocks: [{ type: "reasoning", text: "Hm." }], finish: "end", usage: {} },
    content: [{ type: "thinking", thinking: "Hm.", signature: "" }],
    stop_reason: "end_turn",
  },
  {
    name: "reasoning signed by another vendor",
    reply: {
      blocks: [{ type: "reasoning", text: "", hidden: true, signature: { issuer: "openai", value: "e", id: "rs_1" } }],
      finish: "end",
      usage: {},
    },
    content: [{
      type: "thinking",
      thinking: "",
      signature: "sluice1.eyJpc3N1ZXIiOiJvcGVuYWkiLCJ2YWx1ZSI6ImUiLCJpZCI6InJzXzEifQ",
    }],
    stop_reason: "end_turn",
  },
  {
    name: "redacted reasoning",
    reply: {
      blocks: [{
        type: "reasoning",
        text: "",
        hidden: true,
        signature: SIGNED,
        unknownMembers: { from: "messages", members: { type: "redacted_thinking" } },
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
    name: "a refusal",
    reply: { blocks: [{ type: "refusal", text: "I cannot." }], finish: "refusal", usage: {} },
    content: [{ type: "text", text: "I cannot." }],
    stop_reason: "refusal",
  },
  {
    name: "a refusal that ended as usual",
    reply: { blocks: [{ type: "refusal", text: "I cannot." }], finish: "end", usage: {} },
    content: [{ type: "text", text: "I cannot." }],
    stop_reason: "refusal",
  },
  {
    name: "a refusal without words",
    reply: { blocks: [], finish: "refusal", usage: {} },
    content: [],
    stop_reason: "refusal",
  },
  {
    name: "the length limit",
    reply: { blocks: [{ type: "text", text: "Once upon" }], finish: "length", usage: { completion: 10 } },
    content: [{ type: "text", text: "Once upon" }],
    stop_reason: "max_tokens",
    usage: { ...NO_TOKENS, output_tokens: 10 },
  },
  {
    name: "a stop sequence",
    reply: { blocks: [{ type: "text", text: "a" }], finish: "stop_sequence", stopSequence: "END", usage: {} },
    content: [{ type: "text", text: "a" }],
    stop_reason: "stop_sequence",
    stop_sequence: "END",
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
