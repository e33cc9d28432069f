/** The chat protocol for the suite: schemas of answers, and the bodies of requests. */
import { z } from "zod";
import type { Json } from "../../json/mod.ts";
import { expectThat, shaped } from "../check.ts";
import type { HttpAnswer } from "../suite_context.ts";
import type { PlainAnswer, ProtocolForm } from "../protocol_client.ts";
import { LONG, PERSON, PICTURE, SHORT, TOOLS } from "../prompts.ts";
import { bodiesOf, objectOf } from "../sse.ts";

const count = z.number().int().min(0);

const usageForm = z.object({
  prompt_tokens: count.min(1),
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count.nullish() }).nullish(),
  completion_tokens_details: z.object({ reasoning_tokens: count.nullish() }).nullish(),
});

const callForm = z.object({
  id: z.string().min(1),
  type: z.literal("function"),
  function: z.object({ name: z.string().min(1), arguments: z.string() }),
});

const messageForm = z.looseObject({
  role: z.literal("assistant"),
  content: z.string().nullable(),
  tool_calls: z.array(callForm).min(1).nullish(),
});

const wholeForm = z.object({
  id: z.string().min(1),
  object: z.literal("chat.completion"),
  created: z.number().int().min(1_000_000_000).max(9_999_999_999),
  model: z.string().min(1),
  choices: z.tuple([z.object({ index: z.literal(0), message: messageForm, finish_reason: z.string().nullable() })]),
  usage: z.unknown().optional(),
});

const callDelta = z.object({
  index: count,
  id: z.string().nullish(),
  type: z.string().nullish(),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
});

const chunkForm = z.object({
  id: z.string().min(1),
  object: z.literal("chat.completion.chunk"),
  created: z.number().int(),
  model: z.string().min(1),
  choices: z.array(z.object({
    index: count,
    delta: z.looseObject({
      role: z.string().nullish(),
      content: z.string().nullish(),
      tool_calls: z.array(callDelta).nullish(),
    }),
    finish_reason: z.string().nullish(),
  })).max(1),
  usage: z.unknown().optional(),
});

/** A chunk of a stream. */
export type ChatChunk = z.output<typeof chunkForm>;

/** An answer that was not streamed, or was aggregated from a stream. */
export interface ChatAnswer extends PlainAnswer {
  message: z.output<typeof messageForm>;
}

function readWhole({ text }: HttpAnswer): ChatAnswer {
  const body = objectOf(text, "the answer");
  const { choices: [{ message, finish_reason }], usage } = shaped(wholeForm, body);
  return {
    body,
    message,
    text: message.content ?? "",
    calls: (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
      id,
      name,
      arguments: text,
    })),
    finish: finish_reason,
    usage,
    history: [message as Json],
    hasReasoned: hasReasoned(usage),
  };
}

function hasReasoned(usage: unknown): boolean {
  return Number(Object(Object(usage).completion_tokens_details).reasoning_tokens ?? 0) > 0;
}

/** Collects the text, the finish reasons and the usages of a stream. */
export function aggregateChunks(chunks: readonly ChatChunk[]): { text: string; finish: string[]; usages: unknown[] } {
  const choices = chunks.flatMap(({ choices }) => choices);
  return {
    text: choices.map(({ delta }) => delta.content ?? "").join(""),
    finish: choices.flatMap(({ finish_reason }) => finish_reason === null ? [] : finish_reason ?? []),
    usages: chunks.flatMap(({ usage }) => usage === null || usage === undefined ? [] : [usage]),
  };
}

/** Validates a usage and the sums within it. @throws {Mismatch} if something is wrong */
export function checkUsage(value: unknown): z.output<typeof usageForm> {
  const usage = shaped(usageForm, value, "usage");
  const { prompt_tokens, completion_tokens, total_tokens } = usage;
  const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  const reasoning = usage.completion_tokens_details?.reasoning_tokens ?? 0;
  expectThat(total_tokens === prompt_tokens + completion_tokens, "total = prompt + completion", usage);
  expectThat(cached <= prompt_tokens, "cached tokens among those of the prompt", usage);
  expectThat(reasoning <= completion_tokens, "reasoning tokens among those of the completion", usage);
  return usage;
}

/** The chat protocol. */
export const CHAT: ProtocolForm<ChatAnswer, ChatChunk> = {
  part: "chat",
  errors: "openai",
  body: (model, words) => ({ model, messages: [{ role: "user", content: words }] }),
  incomplete: (model) => ({ model }),
  known: { user: "conform", metadata: { suite: "conform" }, service_tier: "auto", store: false },
  streaming: { stream: true, stream_options: { include_usage: true } },
  readWhole,
  readEvents: (stream) => bodiesOf(stream).map((body, index) => shaped(chunkForm, body, `chunk ${index}`)),
  aggregate(chunks) {
    const { text, finish: [finish = null], usages: [usage] } = aggregateChunks(chunks);
    const message = { role: "assistant", content: text } as const;
    return { body: {}, message, text, calls: [], finish, usage, history: [], hasReasoned: hasReasoned(usage) };
  },
  tokens(usage) {
    const { prompt_tokens, completion_tokens } = checkUsage(usage);
    return { input: prompt_tokens, output: completion_tokens };
  },
  async limit(client) {
    // Newer models refuse the older name, and older hosts do not know the newer one.
    const newer = { max_completion_tokens: SHORT };
    const { status } = await client.once("cut", () => client.post({ body: client.body(LONG, newer) }));
    return status === 200 ? newer : { max_tokens: SHORT };
  },
  cutFinish: "length",
  tools: (count = TOOLS.length) =>
    TOOLS.slice(0, count).map(({ name, description, schema }) => ({
      type: "function",
      function: { name, description, parameters: schema },
    })),
  choices: {
    forced: { tool_choice: { type: "function", function: { name: "get_weather" } } },
    required: { tool_choice: "required" },
    none: { tool_choice: "none" },
  },
  parallel: { parallel_tool_calls: true },
  toolFinish: "tool_calls",
  withResults: (words, { history }, results) => ({
    messages: [
      { role: "user", content: words },
      ...history,
      ...results.map(({ id, output }) => ({ role: "tool", tool_call_id: id, content: output })),
    ],
  }),
  withImage(words) {
    const image_url = { url: `data:image/png;base64,${PICTURE}`, detail: "low" };
    return { messages: [{ role: "user", content: [{ type: "text", text: words }, { type: "image_url", image_url }] }] };
  },
  schema: { response_format: { type: "json_schema", json_schema: { name: "person", strict: true, schema: PERSON } } },
};
