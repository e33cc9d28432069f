/** The messages protocol for the suite: schemas of answers, and the bodies of requests. */
import { z } from "zod";
import type { JsonObject } from "../../json/mod.ts";
import { shaped } from "../check.ts";
import type { PlainAnswer, ProtocolForm } from "../protocol_client.ts";
import { PERSON, PICTURE, SHORT, TOOLS } from "../prompts.ts";
import { bodiesOf, objectOf } from "../sse.ts";

const count = z.number().int().min(0);

const usageForm = z.object({
  input_tokens: count,
  output_tokens: count,
  cache_creation_input_tokens: count.nullish(),
  cache_read_input_tokens: count.nullish(),
});

const blockForm = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text"), text: z.string() }),
  z.looseObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string() }),
  z.looseObject({ type: z.literal("redacted_thinking"), data: z.string() }),
  z.looseObject({
    type: z.literal("tool_use"),
    id: z.string().regex(/^[A-Za-z0-9_-]+$/),
    name: z.string().min(1),
    input: z.record(z.string(), z.unknown()),
  }),
]);

/** A content block of an answer. */
export type MessageBlock = z.output<typeof blockForm>;

const messageForm = z.looseObject({
  id: z.string().min(1),
  type: z.literal("message"),
  role: z.literal("assistant"),
  model: z.string().min(1),
  content: z.array(blockForm),
  stop_reason: z.string().nullable(),
  stop_sequence: z.string().nullable(),
  usage: z.unknown().optional(),
});

/** An answer that was not streamed, or was aggregated from a stream. */
export interface MessageAnswer extends PlainAnswer {
  content: MessageBlock[];
  /** The stop sequence that ended the answer; `null`: none did. */
  stopSequence: string | null;
}

function readMessage(value: JsonObject, where: string): MessageAnswer {
  const { content, stop_reason, stop_sequence, usage } = shaped(messageForm, value, where);
  return {
    body: value,
    content,
    text: content.map((block) => block.type === "text" ? block.text : "").join(""),
    calls: content.flatMap((block) =>
      block.type === "tool_use" ? [{ id: block.id, name: block.name, arguments: JSON.stringify(block.input) }] : []
    ),
    finish: stop_reason,
    stopSequence: stop_sequence,
    usage,
    history: [{ role: "assistant", content: value.content ?? [] }],
    hasReasoned: content.some(({ type }) => type !== "text"),
  };
}

const eventForm = z.looseObject({ type: z.string().min(1) });

/** The data of a stream event. */
export type MessageEvent = z.output<typeof eventForm> & JsonObject;

/** Aggregates a stream as SDKs do: blocks by their index, and the last value of each count. */
function aggregateEvents(events: readonly MessageEvent[]): MessageAnswer {
  const start = Object(events.find(({ type }) => type === "message_start")?.message);
  const blocks: Record<string, unknown>[] = [];
  const inputs = new Map<number, string>();
  let messageDelta: Record<string, unknown> = {};
  let usage = start.usage;
  for (const { type, index, content_block, delta: eventDelta, usage: laterUsage } of events) {
    const blockIndex = Number(index);
    const block = blocks[blockIndex] ?? {};
    const delta = Object(eventDelta);
    if (type === "content_block_start") blocks[blockIndex] = { ...Object(content_block) };
    if (type === "message_delta") {
      messageDelta = { ...messageDelta, ...delta };
      usage = { ...Object(usage), ...Object(laterUsage) };
    }
    if (type !== "content_block_delta") continue;
    if (delta.type === "text_delta") block.text = `${block.text ?? ""}${delta.text}`;
    if (delta.type === "thinking_delta") block.thinking = `${block.thinking ?? ""}${delta.thinking}`;
    if (delta.type === "signature_delta") block.signature = delta.signature;
    if (delta.type === "input_json_delta") inputs.set(blockIndex, (inputs.get(blockIndex) ?? "") + delta.partial_json);
  }
  for (const [blockIndex, text] of inputs) {
    const block = blocks[blockIndex];
    if (block !== undefined) block.input = text === "" ? {} : objectOf(text, "a tool's input");
  }
  return readMessage(
    { stop_reason: null, stop_sequence: null, ...start, ...messageDelta, content: blocks, usage },
    "the stream",
  );
}

/**
 * Validates a usage and returns its totals. The protocol counts cached input tokens separately.
 * @throws {Mismatch} if something is wrong
 */
export function totalsOf(value: unknown): { input: number; output: number } {
  const usage = shaped(usageForm, value, "usage");
  const cached = (usage.cache_creation_input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0);
  return { input: usage.input_tokens + cached, output: usage.output_tokens };
}

/** The messages protocol. */
export const MESSAGES: ProtocolForm<MessageAnswer, MessageEvent> = {
  part: "messages",
  errors: "anthropic",
  body: (model, words) => ({ model, max_tokens: 1024, messages: [{ role: "user", content: words }] }),
  incomplete: (model) => ({ model, messages: [{ role: "user", content: "Hello" }] }),
  known: { metadata: { user_id: "conform" }, service_tier: "auto" },
  streaming: { stream: true },
  readWhole: ({ text }) => readMessage(objectOf(text, "the answer"), "the message"),
  readEvents: (stream) =>
    bodiesOf(stream).map((body, index) => shaped(eventForm, body, `event ${index}`) as MessageEvent),
  aggregate: aggregateEvents,
  tokens: totalsOf,
  limit: () => ({ max_tokens: SHORT }),
  cutFinish: "max_tokens",
  tools: (count = TOOLS.length) =>
    TOOLS.slice(0, count).map(({ name, description, schema }) => ({ name, description, input_schema: schema })),
  choices: {
    forced: { tool_choice: { type: "tool", name: "get_weather" } },
    required: { tool_choice: { type: "any" } },
    none: { tool_choice: { type: "none" } },
  },
  parallel: { tool_choice: { type: "auto" } },
  toolFinish: "tool_use",
  withResults(words, { history }, results) {
    const content = results.map(({ id, output, isError }) => ({
      type: "tool_result",
      tool_use_id: id,
      content: output,
      ...(isError && { is_error: true }),
    }));
    return { messages: [{ role: "user", content: words }, ...history, { role: "user", content }] };
  },
  withImage(words) {
    const source = { type: "base64", media_type: "image/png", data: PICTURE };
    return { messages: [{ role: "user", content: [{ type: "image", source }, { type: "text", text: words }] }] };
  },
  schema: { output_config: { format: { type: "json_schema", schema: PERSON } } },
};
