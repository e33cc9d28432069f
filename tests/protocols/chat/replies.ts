/** Answers that the tests of the chat protocol share, by name. */
import type { Reply } from "../../../lib/protocols/canonical/types.ts";

const usage = { prompt: 16, completion: 3 };

/** One answer for each kind of content. */
export const REPLIES: Readonly<Record<string, Reply>> = {
  text: { id: "up_1", blocks: [{ type: "text", text: "Hello" }], finish: "end", usage },
  empty: { blocks: [], finish: "end", usage },
  emptyText: { blocks: [{ type: "text", text: "" }], finish: "end", usage },
  length: { blocks: [{ type: "text", text: "Hel" }], finish: "length", usage },
  stopSequence: { blocks: [{ type: "text", text: "Hel" }], finish: "stop_sequence", stopSequence: "lo", usage },
  pause: { blocks: [{ type: "text", text: "Wait" }], finish: "pause", usage },
  refusal: { blocks: [{ type: "refusal", text: "No." }], finish: "refusal", usage },
  textThenRefusal: {
    blocks: [{ type: "text", text: "Well. " }, { type: "refusal", text: "No." }],
    finish: "end",
    usage,
  },
  call: {
    blocks: [{ type: "tool_call", id: "call_A1", name: "add", arguments: '{"x": 90071992547409931}' }],
    finish: "tool_use",
    usage,
  },
  callWithoutArguments: {
    blocks: [{ type: "tool_call", id: "call_A1", name: "now", arguments: "{}" }],
    finish: "tool_use",
    usage,
  },
  customCalls: {
    blocks: [
      { type: "tool_call", id: "call_A1", name: "sql", arguments: "select 1", custom: true },
      { type: "tool_call", id: "call_A2", name: "sql", arguments: "", custom: true },
    ],
    finish: "tool_use",
    usage,
  },
  textAroundCalls: {
    blocks: [
      { type: "text", text: "Let me see. " },
      { type: "tool_call", id: "call_A1", name: "add", arguments: '{"x":1}' },
      { type: "tool_call", id: "call_A2", name: "add", arguments: '{"x":2}' },
      { type: "text", text: "Done." },
    ],
    finish: "tool_use",
    usage,
  },
  cutCall: {
    blocks: [{ type: "tool_call", id: "call_A1", name: "add", arguments: '{"x"' }],
    finish: "length",
    usage,
  },
  reasoning: {
    blocks: [
      { type: "reasoning", text: "First.", signature: { issuer: "anthropic", value: "c2ln" } },
      { type: "reasoning", text: "", hidden: true, signature: { issuer: "anthropic", value: "aGlk", id: "redacted" } },
      { type: "reasoning", text: "Second.", signature: { issuer: "openai", value: "gAAA", id: "rs_1" } },
      { type: "text", text: "Hello" },
    ],
    finish: "end",
    usage: { ...usage, reasoning: 2 },
  },
  reasoningThenCall: {
    blocks: [
      { type: "reasoning", text: "Plan.", signature: { issuer: "sluice", value: "AB.cd" } },
      { type: "tool_call", id: "call_A1", name: "add", arguments: "{}" },
    ],
    finish: "tool_use",
    usage,
  },
  reasoningOnly: { blocks: [{ type: "reasoning", text: "Hm." }], finish: "length", usage },
  hiddenOnly: {
    blocks: [{
      type: "reasoning",
      text: "",
      hidden: true,
      signature: { issuer: "anthropic", value: "aGlk", id: "redacted" },
    }],
    finish: "end",
    usage,
  },
  citations: {
    blocks: [
      { type: "text", text: "😀 So: " },
      {
        type: "text",
        text: "Oslo.",
        citations: [
          {
            from: "messages",
            value: { type: "web_search_result_location", url: "https://example.com/1", title: null, cited_text: "O" },
          },
          { from: "messages", value: { type: "char_location", document_index: 0 } },
          {
            from: "responses",
            value: { type: "url_citation", url: "https://example.com/2", title: "Two", start_index: 1, end_index: 3 },
          },
          {
            from: "chat",
            value: {
              type: "url_citation",
              url_citation: { start_index: 0, end_index: 1, url: "https://example.com/3", title: "Three" },
            },
          },
        ],
      },
    ],
    finish: "end",
    usage,
  },
  vendor_specific: {
    blocks: [
      { type: "vendor_specific", from: "messages", value: { type: "server_tool_use", id: "srvtoolu_1" } },
      { type: "text", text: "Found." },
    ],
    finish: "end",
    usage,
  },
};
