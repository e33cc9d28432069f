/**
 * Schema of the body of `POST /v1/responses`, with the types and ranges of OpenAI's API reference. A body that does not
 * match gets status 400 from `checkBody` in `../fields.ts`. Limits of a model are checked in `lib/request/rules.ts`.
 */
import { z } from "zod";
import {
  cacheOptionsField,
  cacheRetentionField,
  effortField,
  expecting,
  fallbacksField,
  metadataField,
  objectField,
  providerField,
  safetyIdentifierField,
  tokensField,
} from "../fields.ts";
import { inputField, instructionsField } from "./input_schema.ts";
import { toolChoiceField, toolsField } from "./tool_schema.ts";

const summaryField = z.enum(["auto", "concise", "detailed"]).nullish().describe(
  "Whether to return a summary of the reasoning, and how detailed",
);

const reasoningField = z.looseObject({
  effort: effortField.nullish().describe("Reasoning effort"),
  summary: summaryField,
  generate_summary: summaryField.describe("Deprecated: use `summary`"),
  context: z.enum(["auto", "current_turn", "all_turns"]).nullish(),
  mode: z.enum(["standard", "pro"]).nullish(),
  max_tokens: tokensField.nullish().describe("Maximum number of tokens for reasoning. An extension"),
  enabled: z.boolean().nullish().describe("Whether the model reasons. An extension"),
});

const textField = z.looseObject({
  format: z.discriminatedUnion("type", [
    z.looseObject({ type: z.literal("text") }),
    z.looseObject({ type: z.literal("json_object") }),
    z.looseObject({
      type: z.literal("json_schema"),
      name: z.string().min(1).max(64),
      schema: objectField.describe("JSON Schema of the answer"),
      description: z.string().nullish(),
      strict: z.boolean().nullish(),
    }),
  ], expecting('"text", "json_object" or "json_schema"')).nullish().describe("Format of the answer"),
  verbosity: z.enum(["low", "medium", "high"]).nullish(),
});

const penaltyField = z.number().min(-2).max(2).nullish();
// The schema accepts it, so that the reader can explain its refusal.
const statefulField = z.union([z.string(), objectField]).nullish().describe("Not supported");

/** The body of `POST /v1/responses`. */
export const schema: z.ZodObject<z.ZodRawShape, z.core.$loose> = z.looseObject({
  model: z.string().min(1).max(256).describe("Model id, `<vendor>/<model_name>`"),
  input: inputField,
  instructions: instructionsField,
  stream: z.boolean().nullish().describe("Whether to stream the answer as server-sent events"),
  stream_options: z.looseObject({ include_obfuscation: z.boolean().nullish() }).nullish(),
  // OpenAI's minimum is 16; the gateway accepts less.
  max_output_tokens: tokensField.nullish().describe("Maximum number of tokens in the answer, including reasoning"),
  max_tool_calls: z.number().int().min(1).nullish().describe("Maximum number of calls to vendor-hosted tools"),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_logprobs: z.number().int().min(0).max(20).nullish(),
  presence_penalty: penaltyField,
  frequency_penalty: penaltyField,
  reasoning: reasoningField.nullish().describe("Whether and how the model reasons before it answers"),
  text: textField.nullish().describe("Format and length of the answer"),
  tools: toolsField.nullish().describe("Tools that the model may call"),
  tool_choice: toolChoiceField.nullish().describe("Tools that the model may or must call. Default: auto"),
  parallel_tool_calls: z.boolean().nullish().describe("Whether an answer may have several tool calls"),
  include: z.array(z.string().max(128)).max(64).nullish().describe(
    "Additional output to include in the answer, such as `reasoning.encrypted_content`",
  ),
  truncation: z.enum(["auto", "disabled"]).nullish().describe(
    "If the input exceeds the context window: `auto` drops the oldest items, `disabled` (the default) returns an error",
  ),
  store: z.boolean().nullish().describe("Whether later requests may refer to the answer. Default: true"),
  metadata: metadataField.nullish(),
  service_tier: z.enum(["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"]).nullish(),
  user: z.string().nullish().describe("Opaque id of the end user"),
  safety_identifier: safetyIdentifierField.nullish(),
  prompt_cache_key: z.string().nullish(),
  prompt_cache_retention: cacheRetentionField.nullish(),
  prompt_cache_options: cacheOptionsField.nullish(),
  moderation: objectField.nullish(),
  context_management: z.array(z.looseObject({ type: z.string() })).nullish(),
  previous_response_id: z.string().nullish().describe(
    "Id of a recent response of the same key, which this request continues",
  ),
  conversation: statefulField,
  prompt: statefulField,
  background: z.boolean().nullish().describe("Only false is supported"),
  provider: providerField.nullish().describe("Routing preferences"),
  models: fallbacksField.nullish().describe("Models to try if the first one fails"),
});
