/** Streams of upstreams, each with its expected result. The frames are in `tests/fixtures/responses/streams`. */
import type { ContentBlock, FinishReason, TokenUsage } from "../../../lib/protocols/canonical/types.ts";
import type { ErrorKind } from "../../../lib/errors.ts";
import { isObject, type JsonObject, parseJson } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";

/** Result of a stream. */
export type Outcome =
  | { blocks: ContentBlock[]; finish: FinishReason; usage?: TokenUsage }
  | { error: ErrorKind; code?: string; message?: string };

/** Usage that most of the streams end with. */
export const USAGE: TokenUsage = {
  prompt: 16,
  input_cache_read: 16,
  input_cache_write_5m: 4,
  completion: 87,
  reasoning: 20,
};

const SIGNED = { issuer: "openai", value: "gAAAAA-last", id: "rs_1" };
const WEATHER: ContentBlock = {
  type: "tool_call",
  id: "call_a",
  name: "weather",
  arguments: '{"city":"Oslo","id":12345678901234567890}',
};
const NOW: ContentBlock = { type: "tool_call", id: "call_b", name: "now", arguments: "{}" };
const PLAN: ContentBlock = {
  type: "reasoning",
  text: "**Plan**\n\nLook it up.\n\nThen say it.",
  signature: SIGNED,
};
const ANSWER: ContentBlock = { type: "text", text: "It is 4 °C." };
const SAID: ContentBlock = { type: "text", text: "Hello, wörld 🌍" };
const RAW: ContentBlock = { type: "reasoning", text: "Hm, so." };
const LOOKING: ContentBlock = { type: "text", text: "Looking." };
const CUT: ContentBlock = { type: "text", text: "On and" };
const READ: ContentBlock = {
  type: "tool_call",
  id: "call_a",
  name: "read",
  arguments: '{"n":1.0}',
  namespace: "files",
};

/** All streams, by the names of their files. */
export const STREAMS: Readonly<Record<string, Outcome>> = {
  text: { blocks: [SAID], finish: "end" },
  text_with_done: { blocks: [SAID], finish: "end" },
  reasoning: { blocks: [PLAN, ANSWER], finish: "end" },
  hidden_reasoning: {
    blocks: [{ type: "reasoning", text: "", hidden: true, signature: SIGNED }, ANSWER],
    finish: "end",
  },
  raw_reasoning: { blocks: [RAW, ANSWER], finish: "end" },
  raw_reasoning_open: { blocks: [RAW, ANSWER], finish: "end" },
  parallel_calls: { blocks: [WEATHER, NOW], finish: "tool_use" },
  interleaved_calls: { blocks: [WEATHER, NOW], finish: "tool_use" },
  text_call_text: { blocks: [LOOKING, READ, { type: "text", text: "Wait." }], finish: "tool_use" },
  call_without_deltas: { blocks: [{ ...NOW, id: "call_a" }], finish: "tool_use" },
  call_without_arguments: { blocks: [{ ...NOW, id: "call_a" }], finish: "tool_use" },
  call_only_done: { blocks: [WEATHER], finish: "tool_use" },
  call_without_name: { blocks: [{ type: "text", text: "Oh." }], finish: "end" },
  items_only_at_end: { blocks: [PLAN, ANSWER, WEATHER], finish: "tool_use" },
  texts_only_in_done: {
    blocks: [
      { type: "text", text: "Whole." },
      { type: "reasoning", text: "Late.", signature: { ...SIGNED, id: "rs_9" } },
    ],
    finish: "end",
  },
  custom_call: {
    blocks: [{ type: "tool_call", id: "call_p", name: "patch", arguments: "*** Begin\n+a", custom: true }],
    finish: "tool_use",
  },
  refusal: { blocks: [{ type: "refusal", text: "I cannot help with that." }], finish: "end" },
  length: { blocks: [CUT], finish: "length" },
  content_filter: { blocks: [CUT], finish: "refusal" },
  steered: { blocks: [CUT], finish: "length" },
  length_in_call: {
    blocks: [LOOKING, { type: "tool_call", id: "call_a", name: "read", arguments: '{"path":"a' }],
    finish: "length",
  },
  hosted_search: {
    blocks: [
      {
        type: "vendor_specific",
        from: "responses",
        value: {
          type: "web_search_call",
          id: "ws_1",
          status: "completed",
          action: { type: "search", query: "oslo weather" },
        },
      },
      {
        type: "text",
        text: "4 °C.",
        citations: [{
          from: "responses",
          value: { type: "url_citation", url: "https://example.com/oslo", title: "Oslo", start_index: 0, end_index: 5 },
        }],
      },
    ],
    finish: "end",
  },
  ids_that_change: {
    // The token belongs to the id in the item's last event.
    blocks: [{ ...PLAN, signature: { ...SIGNED, id: "opaque11" } }, ANSWER, {
      ...WEATHER,
      arguments: '{"city":"Oslo"}',
    }],
    finish: "tool_use",
  },
  shared_place: {
    blocks: [
      { type: "text", text: "Both." },
      { type: "tool_call", id: "call_a", name: "a", arguments: '{"x":1}' },
      { type: "tool_call", id: "call_b", name: "b", arguments: '{"y":2}' },
    ],
    finish: "tool_use",
  },
  without_ids: { blocks: [LOOKING, READ], finish: "tool_use", usage: { prompt: 36, completion: 87 } },
  six_events: { blocks: [{ type: "text", text: "Six." }], finish: "end" },
  completed_without_output: { blocks: [SAID], finish: "end" },
  items_without_done: { blocks: [LOOKING, READ], finish: "tool_use" },
  codex_done: { blocks: [SAID], finish: "end" },
  error_first: {
    error: "exhausted",
    code: "insufficient_quota",
    message: "The credit at the model's vendor is used up",
  },
  error_nested: { error: "exhausted", code: "insufficient_quota" },
  error_flat: { error: "exhausted" },
  error_merged: { error: "upstream" },
  error_bare: { error: "invalid", code: "invalid_image", message: "Bad image at [address] with [key]" },
  failed_context: { error: "invalid", code: "context_length_exceeded" },
  failed_prompt: { error: "invalid", code: "invalid_prompt" },
  cancelled: { error: "upstream" },
  cut: { error: "upstream", message: "The model's answer ended before it was complete" },
  cut_after_items: { error: "upstream", message: "The model's answer ended before it was complete" },
};

/** Events of a stream, as objects. */
export function streamEvents(name: string): JsonObject[] {
  const path = new URL(`../../fixtures/responses/streams/${name}.jsonl`, import.meta.url);
  return Deno.readTextFileSync(path).trimEnd().split("\n").map((line) => {
    const event = parseJson(line);
    if (!isObject(event)) throw new TypeError(`Cannot use ${name}: a line is not an object`);
    return event;
  });
}

/** Frames of a stream. */
export function streamFrames(name: string): Frame[] {
  const frames = streamEvents(name).map((event): Frame => ({
    ...(typeof event.type === "string" && { event: event.type }),
    data: JSON.stringify(event),
  }));
  return name === "text_with_done" ? [{ data: ": ping" }, ...frames, { data: "[DONE]" }] : frames;
}
