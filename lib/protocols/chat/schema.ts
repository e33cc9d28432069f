/**
 * Schema of the body of `POST /v1/chat/completions`, with the types and ranges of OpenAI's API reference. A body that
 * does not match gets status 400 from `checkBody` in `../fields.ts`. Limits of a model are checked in
 * `lib/request/rules.ts`.
 */
import { z } from "zod";
import {
  cacheOptionsField,
  cacheRetentionField,
  COUNTS,
  effortField,
  fallbacksField,
  metadataField,
  objectField,
  providerField,
  safetyIdentifierField,
  seedField,
  stopText,
  tokensField,
} from "../fields.ts";
import { EFFORTS, MAX_ANSWERS } from "../canonical/types.ts";
import { messagesField } from "./message_schema.ts";
import { functionCallField, functionsField, toolChoiceField, toolsField } from "./tool_schema.ts";

const stopField = z.union([
  stopText.min(1),
  z.array(stopText.min(1)).max(COUNTS.stops),
], { error: `Expected a string, or an array of at most ${COUNTS.stops} strings` });

/** -1 asks for no limit: the web UI of llama.cpp and the examples of LM Studio send it. */
const limitField = z.union([tokensField, z.literal(-1)], {
  error: "Expected a number of tokens of at least 1, or -1 for no limit",
});

const responseFormatField = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text") }),
  z.looseObject({ type: z.literal("json_object") }),
  z.looseObject({
    type: z.literal("json_schema"),
    json_schema: z.looseObject({
      name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, { error: "Expected 1 to 64 letters, digits, _ or -" }),
      description: z.string().nullish(),
      schema: objectField.nullish(),
      strict: z.boolean().nullish(),
    }),
  }),
]);

const reasoningField = z.looseObject({
  effort: effortField.nullish(),
  max_tokens: tokensField.nullish().describe(
    "Maximum number of tokens for reasoning. Cannot be combined with `effort`",
  ),
  enabled: z.boolean().nullish(),
  exclude: z.boolean().nullish().describe("Reason, but leave the reasoning text out of the answer"),
  summary: z.enum(["auto", "concise", "detailed"]).nullish(),
});

const predictionField = z.looseObject({
  type: z.literal("content"),
  content: z.union([
    z.string(),
    z.array(z.looseObject({ type: z.literal("text"), text: z.string() })).max(COUNTS.parts),
  ], { error: "Expected a string or an array of text parts" }),
});

/** Extensions of OpenRouter and of other OpenAI-compatible servers. */
const extensions = {
  reasoning: reasoningField.nullish().describe("Reasoning effort and output"),
  include_reasoning: z.boolean().nullish().describe("False: leave the reasoning text out of the answer"),
  usage: z.looseObject({ include: z.boolean().nullish() }).nullish().describe("As `stream_options.include_usage`"),
  provider: providerField.nullish().describe("Routing preferences"),
  models: fallbacksField.nullish().describe("Models to try if the first one fails"),
  top_k: z.number().int().min(-1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  top_a: z.number().min(0).max(1).nullish(),
  repetition_penalty: z.number().min(0).max(2).nullish(),
  session_id: z.string().max(256).nullish(),
};

/** Deprecated members; their successors take precedence. */
const deprecated = {
  max_tokens: limitField.nullish().describe("Use `max_completion_tokens`"),
  functions: functionsField.nullish().describe("Use `tools`"),
  function_call: functionCallField.nullish().describe("Use `tool_choice`"),
  user: z.string().nullish().describe("Use `safety_identifier`"),
  prompt_cache_retention: cacheRetentionField.nullish(),
};

/** A chat completion request. Unknown members are allowed. */
export const chatRequest = z.looseObject({
  model: z.string().min(1).max(256).describe("Model id, `<vendor>/<model_name>`"),
  messages: messagesField.describe("The conversation so far, oldest first"),
  max_completion_tokens: limitField.nullish().describe(
    "Maximum number of tokens in the answer, including reasoning; -1: that of the model",
  ),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  n: z.number().int().min(1).max(MAX_ANSWERS).nullish().describe("Number of answers. Default: 1"),
  stop: stopField.nullish().describe("Strings at which the answer ends; they are not part of it"),
  logit_bias: z.record(z.string(), z.number().min(-100).max(100)).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.number().int().min(0).max(20).nullish().describe("Requires `logprobs`"),
  seed: seedField.nullish(),
  stream: z.boolean().nullish().describe("Whether to stream the answer as server-sent events. Default: false"),
  stream_options: z.looseObject({
    include_usage: z.boolean().nullish().describe("Whether to send the usage in a final chunk"),
    include_obfuscation: z.boolean().nullish(),
  }).nullish().describe("Only with `stream`"),
  tools: toolsField.nullish().describe("Tools that the model may call"),
  tool_choice: toolChoiceField.nullish().describe("Default: `auto` if there are tools, else `none`"),
  parallel_tool_calls: z.boolean().nullish().describe(
    "Whether the model may make several tool calls at once. Default: true",
  ),
  response_format: responseFormatField.nullish().describe("Format of the answer"),
  reasoning_effort: z.enum([...EFFORTS, "default"]).nullish().describe(
    "Reasoning effort; `default`: that of the model",
  ),
  verbosity: z.enum(["low", "medium", "high"]).nullish(),
  modalities: z.array(z.enum(["text", "audio"])).nullish(),
  audio: objectField.nullish(),
  prediction: predictionField.nullish(),
  metadata: metadataField.nullish(),
  store: z.boolean().nullish(),
  service_tier: z.enum(["auto", "default", "flex", "scale", "priority", "fast"]).nullish(),
  prompt_cache_key: z.string().nullish(),
  prompt_cache_options: cacheOptionsField.nullish(),
  safety_identifier: safetyIdentifierField.nullish().describe("Opaque id of the end user"),
  moderation: objectField.nullish(),
  web_search_options: z.looseObject({
    search_context_size: z.enum(["low", "medium", "high"]).nullish(),
    user_location: objectField.nullish(),
  }).nullish(),
  ...deprecated,
  ...extensions,
});
