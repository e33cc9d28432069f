/** Chat completions as they must look on the wire. */
import { z } from "zod";
import type { JsonObject } from "../../json/mod.ts";
import { must, shaped } from "../check.ts";
import type { Dialect } from "../common.ts";
import type { Answer } from "../context.ts";
import { ARGUMENTS, type PlainTool, TOOLS } from "../words.ts";
import { bodiesOf, objectOf, type WireStream } from "../wire.ts";

const count = z.number().int().min(0);

/** Usage of an answer. */
export const usageForm = z.object({
  prompt_tokens: count.min(1),
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count.nullish() }).nullish(),
  completion_tokens_details: z.object({ reasoning_tokens: count.nullish() }).nullish(),
});

/** Usage of an answer. */
export type Usage = z.output<typeof usageForm>;

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

const piece = z.object({
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
      tool_calls: z.array(piece).nullish(),
    }),
    finish_reason: z.string().nullish(),
  })).max(1),
  usage: z.unknown().optional(),
});

/** One chunk of a stream. */
export type Chunk = z.output<typeof chunkForm>;

/** One call of a tool. */
export type ChatCall = z.output<typeof callForm>;

/** What a whole answer says. */
export interface Said {
  body: JsonObject;
  message: z.output<typeof messageForm>;
  text: string;
  calls: ChatCall[];
  finish: string | null;
  usage: unknown;
}

/** Reads a whole answer. */
export function readWhole({ text }: Answer): Said {
  const body = objectOf(text, "the answer");
  const { choices: [{ message, finish_reason }], usage } = shaped(wholeForm, body);
  return {
    body,
    message,
    text: message.content ?? "",
    calls: message.tool_calls ?? [],
    finish: finish_reason,
    usage,
  };
}

/** Reads the chunks of a stream, each by its form. */
export function readChunks(stream: WireStream): Chunk[] {
  return bodiesOf(stream).map((body, index) => shaped(chunkForm, body, `chunk ${index}`));
}

/** What a stream says once its pieces are put together, by whatever order they came in. */
export function foldChunks(chunks: readonly Chunk[]): { text: string; finish: string[]; usages: unknown[] } {
  const choices = chunks.flatMap(({ choices }) => choices);
  return {
    text: choices.map(({ delta }) => delta.content ?? "").join(""),
    finish: choices.flatMap(({ finish_reason }) => finish_reason === null ? [] : finish_reason ?? []),
    usages: chunks.flatMap(({ usage }) => usage === null || usage === undefined ? [] : [usage]),
  };
}

/** The numbers of a usage, and whether they fit together. */
export function checkUsage(value: unknown): Usage {
  must(value !== undefined && value !== null, { expected: "usage", seen: value });
  const usage = shaped(usageForm, value, "usage");
  const { prompt_tokens, completion_tokens, total_tokens } = usage;
  const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  const reasoning = usage.completion_tokens_details?.reasoning_tokens ?? 0;
  must(total_tokens === prompt_tokens + completion_tokens, { expected: "total = prompt + completion", seen: usage });
  must(cached <= prompt_tokens, { expected: "cached tokens among those of the prompt", seen: usage });
  must(reasoning <= completion_tokens, { expected: "reasoning tokens among those of the completion", seen: usage });
  return usage;
}

/** Calls whose names are among the tools, with ids of their own and arguments of the right form. */
export function checkCalls(calls: readonly { id: string; name: string; arguments: string }[]): void {
  must(new Set(calls.map(({ id }) => id)).size === calls.length, { expected: "an id for each call", seen: calls });
  for (const call of calls) {
    const member = ARGUMENTS[call.name];
    must(member !== undefined, { expected: "a call of one of the tools", seen: call.name });
    const read = objectOf(call.arguments, "arguments");
    must(typeof read[member] === "string", { expected: `arguments with "${member}"`, seen: call.arguments });
  }
}

/** The suite's tools as chat has them. */
export function chatTools(count: number = TOOLS.length): JsonObject[] {
  return TOOLS.slice(0, count).map(({ name, description, schema }: PlainTool) => ({
    type: "function",
    function: { name, description, parameters: schema },
  }));
}

/** Chat for the checks that every protocol has. */
export const CHAT: Dialect = {
  part: "chat",
  errors: "openai",
  body: ({ subject }, words, more = {}) => ({
    model: subject.model,
    messages: [{ role: "user", content: words }],
    ...more,
  }),
  incomplete: ({ subject }) => ({ model: subject.model }),
  known: { user: "conform", metadata: { suite: "conform" }, service_tier: "auto", store: false },
};
