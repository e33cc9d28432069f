/** Messages as they must look on the wire. */
import { z } from "zod";
import type { JsonObject } from "../../json/mod.ts";
import { must, shaped } from "../check.ts";
import type { Dialect } from "../common.ts";
import type { Answer } from "../context.ts";
import { type PlainTool, TOOLS } from "../words.ts";
import { bodiesOf, objectOf, type WireStream } from "../wire.ts";

const count = z.number().int().min(0);

const usageForm = z.object({
  input_tokens: count,
  output_tokens: count,
  cache_creation_input_tokens: count.nullish(),
  cache_read_input_tokens: count.nullish(),
});

/** Usage of an answer. */
export type Usage = z.output<typeof usageForm>;

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

/** One block of an answer. */
export type Block = z.output<typeof blockForm>;

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

/** What an answer says. */
export interface Said {
  body: JsonObject;
  content: Block[];
  text: string;
  calls: Extract<Block, { type: "tool_use" }>[];
  stop: string | null;
  stopSequence: string | null;
  usage: unknown;
}

/** Reads a message. */
export function readMessage(value: JsonObject, where = "the message"): Said {
  const { content, stop_reason, stop_sequence, usage } = shaped(messageForm, value, where);
  return {
    body: value,
    content,
    text: content.map((block) => block.type === "text" ? block.text : "").join(""),
    calls: content.filter((block) => block.type === "tool_use"),
    stop: stop_reason,
    stopSequence: stop_sequence,
    usage,
  };
}

/** Reads a whole answer. */
export function readWhole({ text }: Answer): Said {
  return readMessage(objectOf(text, "the answer"));
}

const eventForm = z.looseObject({ type: z.string().min(1) });

/** One event's body. */
export type Event = z.output<typeof eventForm> & JsonObject;

/** Events of a stream, by their bodies. */
export function readEvents(stream: WireStream): Event[] {
  return bodiesOf(stream).map((body, index) => shaped(eventForm, body, `event ${index}`) as Event);
}

/** What a stream says, put together as SDKs do: blocks by index, numbers by the last word. */
export function foldEvents(events: readonly Event[]): Said {
  const start = Object(events.find(({ type }) => type === "message_start")?.message);
  const blocks: Record<string, unknown>[] = [];
  const inputs = new Map<number, string>();
  let last: Record<string, unknown> = {};
  let usage = start.usage;
  for (const { type, index, content_block, delta, usage: more } of events) {
    const at = Number(index);
    const block = blocks[at] ?? {};
    const piece = Object(delta);
    if (type === "content_block_start") blocks[at] = { ...Object(content_block) };
    if (type === "message_delta") {
      last = { ...last, ...piece };
      usage = { ...Object(usage), ...Object(more) };
    }
    if (type !== "content_block_delta") continue;
    if (piece.type === "text_delta") block.text = `${block.text ?? ""}${piece.text}`;
    if (piece.type === "thinking_delta") block.thinking = `${block.thinking ?? ""}${piece.thinking}`;
    if (piece.type === "signature_delta") block.signature = piece.signature;
    if (piece.type === "input_json_delta") inputs.set(at, (inputs.get(at) ?? "") + piece.partial_json);
  }
  for (const [at, text] of inputs) {
    const block = blocks[at];
    if (block !== undefined) block.input = text === "" ? {} : objectOf(text, "a tool's input");
  }
  return readMessage(
    { stop_reason: null, stop_sequence: null, ...start, ...last, content: blocks, usage },
    "the stream",
  );
}

/** The numbers of a usage. */
export function checkUsage(value: unknown): Usage {
  must(value !== undefined && value !== null, { expected: "usage", seen: value });
  return shaped(usageForm, value, "usage");
}

/** All tokens of a prompt: those of the cache are counted apart. */
export function inputOf(usage: Usage): number {
  return usage.input_tokens + (usage.cache_creation_input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0);
}

/** The suite's tools as messages have them. */
export function messagesTools(count: number = TOOLS.length): JsonObject[] {
  return TOOLS.slice(0, count).map(({ name, description, schema }: PlainTool) => ({
    name,
    description,
    input_schema: schema,
  }));
}

/** Room for an answer, in tokens. */
const ROOM = 1024;

/** Messages for the checks that every protocol has. */
export const MESSAGES: Dialect = {
  part: "messages",
  errors: "anthropic",
  body: ({ subject }, words, more = {}) => ({
    model: subject.model,
    max_tokens: ROOM,
    messages: [{ role: "user", content: words }],
    ...more,
  }),
  incomplete: ({ subject }) => ({ model: subject.model, messages: [{ role: "user", content: "Hello" }] }),
  known: { metadata: { user_id: "conform" }, service_tier: "auto" },
};
