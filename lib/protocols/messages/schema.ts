/**
 * Schemas of the bodies of `/v1/messages` and `/v1/messages/count_tokens`, with the types and ranges of Anthropic's API
 * reference. A body that does not match gets status 400 from `checkBody` in `../fields.ts`. Limits of a model are
 * checked in `lib/request/rules.ts`.
 */
import { z } from "zod";
import { COUNTS, expecting, fallbacksField, objectField, providerField, stopText, toolNameField } from "../fields.ts";
import { cacheField } from "../canonical/cache_mark.ts";
import { messagesField, systemField } from "./content_schema.ts";

const customTool = z.looseObject({
  type: z.literal("custom", { error: 'Expected "custom" or the type of a vendor\'s tool' }).nullish(),
  name: toolNameField,
  description: z.string().nullish(),
  input_schema: z.looseObject({ type: z.literal("object").nullish() }).describe("JSON Schema of the tool's input"),
  strict: z.boolean().nullish(),
  cache_control: cacheField,
});

// Excludes `function`, so that a tool in OpenAI's form is refused, and not passed on as one of the vendor's.
const typedTool = z.looseObject({
  type: z.string().max(128).regex(/^(?!custom$|function$)[a-z0-9_]+$/, {
    error: 'Expected "custom" or the type of a vendor\'s tool',
  }),
  name: z.string().min(1).max(128).nullish(),
  cache_control: cacheField,
});

const parallelFlag = z.boolean().nullish().describe("Whether to allow at most one tool call");
const toolChoiceField = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("auto"), disable_parallel_tool_use: parallelFlag }),
  z.looseObject({ type: z.literal("any"), disable_parallel_tool_use: parallelFlag }),
  z.looseObject({ type: z.literal("tool"), name: z.string().min(1), disable_parallel_tool_use: parallelFlag }),
  z.looseObject({ type: z.literal("none") }),
], expecting('"auto", "any", "tool" or "none"'));

const displayField = z.enum(["summarized", "omitted", "updates"]).nullish().describe(
  "Form in which thinking is returned",
);
const thinkingField = z.discriminatedUnion("type", [
  z.looseObject({
    type: z.literal("enabled"),
    budget_tokens: z.number().int().min(1024).describe("Maximum number of tokens for thinking, less than `max_tokens`"),
    display: displayField,
  }),
  z.looseObject({ type: z.literal("adaptive"), display: displayField }),
  z.looseObject({ type: z.literal("disabled") }),
  z.looseObject({ type: z.literal("between_tools"), display: displayField }),
], expecting('"enabled", "adaptive", "disabled" or "between_tools"'));

const formatField = z.looseObject({ type: z.literal("json_schema"), schema: objectField }).nullish();

/** Members of both bodies. */
const shared = {
  model: z.string().min(1).max(256).describe("Model id, `<vendor>/<model_name>`"),
  messages: messagesField,
  system: systemField,
  tools: z.array(z.union([customTool, typedTool])).max(COUNTS.tools).nullish(),
  tool_choice: toolChoiceField.nullish(),
  thinking: thinkingField.nullish().describe("Extended thinking: whether and how the model thinks before it answers"),
  output_config: z.looseObject({
    effort: z.enum(["low", "medium", "high", "xhigh", "max"]).nullish().describe(
      "Effort that the model puts into the answer",
    ),
    format: formatField.describe("Format of the answer"),
  }).nullish(),
  output_format: formatField.describe("Deprecated: use `output_config.format`"),
  temperature: z.number().min(0).max(1).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.number().int().min(0).nullish(),
  stop_sequences: z.array(stopText).max(COUNTS.stops).nullish(),
  metadata: z.looseObject({ user_id: z.string().nullish().describe("Opaque id of the end user") }).nullish(),
  service_tier: z.enum(["auto", "standard_only"]).nullish(),
  speed: z.enum(["standard", "fast"]).nullish(),
  inference_geo: z.string().nullish(),
  cache_control: cacheField,
  container: z.union([z.string(), objectField]).nullish(),
  mcp_servers: z.array(objectField).nullish(),
  context_management: objectField.nullish(),
  diagnostics: objectField.nullish(),
  provider: providerField.nullish().describe("Routing preferences"),
  models: fallbacksField.nullish().describe("Models to try if the first one fails"),
  fallbacks: z.union([
    z.array(z.looseObject({ model: z.string().min(1).max(256) })).max(COUNTS.fallbacks),
    objectField,
    z.string(),
  ]).nullish().describe("Models to try if the first one fails, each as an object with its `model`"),
};

/** The body of `POST /v1/messages`. */
export const schema: z.ZodObject<z.ZodRawShape, z.core.$loose> = z.looseObject({
  ...shared,
  // With 0 the request only fills the prompt cache.
  max_tokens: z.number().int().min(0).max(1_000_000_000).describe(
    "Maximum number of tokens in the answer, including thinking",
  ),
  stream: z.boolean().nullish().describe("Whether to stream the answer as server-sent events"),
});

/** The body of `POST /v1/messages/count_tokens`. */
export const countTokensSchema: z.ZodType = z.looseObject(shared);
