/** Schemas of responses, for the API description. Those of requests are in the folders of the protocols. */
import { z } from "zod";
import { priceSchema } from "../catalog/price_schema.ts";

const architecture = z.strictObject({
  modality: z.string(),
  input_modalities: z.array(z.string()),
  output_modalities: z.array(z.string()),
  tokenizer: z.string(),
  instruct_type: z.string().nullable(),
});

const pricing = z.strictObject({
  prompt: priceSchema,
  completion: priceSchema,
  input_cache_read: priceSchema,
  input_cache_write_5m: priceSchema,
  input_cache_write_1h: priceSchema,
  input_image: priceSchema.optional().describe(
    "Image models: per token of uploaded images, as reported by the upstream",
  ),
  request: priceSchema.optional().describe("Rerank models: per search"),
}).describe("USD per token, as decimal strings");

const topProvider = z.strictObject({
  context_length: z.number().int(),
  max_completion_tokens: z.number().int(),
  is_moderated: z.boolean(),
});

/** A model at `/v1/models`. */
export const compatibleModelSchema = z.strictObject({
  id: z.string().describe("<vendor>/<model_name>"),
  object: z.literal("model"),
  created: z.number().int().describe("Time at which the model was added, as Unix time in seconds"),
  owned_by: z.string(),
  canonical_slug: z.string(),
  name: z.string(),
  description: z.string(),
  context_length: z.number().int(),
  architecture,
  pricing,
  top_provider: topProvider,
  per_request_limits: z.strictObject({ prompt_tokens: z.number().int(), completion_tokens: z.number().int() })
    .nullable(),
  supported_parameters: z.array(z.string()),
  default_parameters: z.record(z.string(), z.number().nullable()).nullable(),
  expiration_date: z.string().nullable(),
  embedding: z.strictObject({
    dimensions: z.number().int(),
    min_dimensions: z.number().int().optional(),
    max_input_tokens: z.number().int(),
    space: z.string().nullable(),
  }).optional().describe("Embedding models: properties of their vectors"),
});

/** The list at `/v1/models`. */
export const compatibleListSchema = z.strictObject({
  object: z.literal("list"),
  data: z.array(compatibleModelSchema),
});

const support = z.strictObject({ supported: z.boolean() });

/** Anthropic's `ModelCapabilities`. */
const capabilities = z.strictObject({
  batch: support,
  citations: support,
  code_execution: support,
  context_management: support.extend({
    clear_thinking_20251015: z.null(),
    clear_tool_uses_20250919: z.null(),
    compact_20260112: z.null(),
  }),
  effort: support.extend({ low: support, medium: support, high: support, xhigh: support, max: support }),
  image_input: support,
  pdf_input: support,
  server_tools: support.extend({ code_execution: support, web_search: support }),
  structured_outputs: support,
  thinking: support.extend({
    types: z.strictObject({ adaptive: support, between_tools: support, disabled: support, enabled: support }),
  }),
});

/** A model at `/anthropic/v1/models`. */
export const nativeModelSchema = z.strictObject({
  type: z.literal("model"),
  id: z.string(),
  display_name: z.string(),
  created_at: z.string().describe("ISO 8601"),
  line: z.null(),
  lifecycle: z.enum(["active", "deprecated"]).describe("`deprecated` if the model has an expiration date"),
  deprecated_at: z.null(),
  retires_at: z.string().nullable().describe("As `expiration_date`, in ISO 8601"),
  capabilities: capabilities.describe("What the model can do here"),
  owned_by: z.string(),
  canonical_slug: z.string(),
  description: z.string(),
  context_length: z.number().int(),
  max_input_tokens: z.number().int().describe("As `context_length`, under Anthropic's name"),
  max_tokens: z.number().int().describe("Maximum number of tokens in an answer, including thinking"),
  architecture,
  pricing,
  top_provider: topProvider,
  supported_parameters: z.array(z.string()),
  expiration_date: z.string().nullable(),
});

/** The list at `/anthropic/v1/models`. */
export const nativeListSchema = z.strictObject({
  data: z.array(nativeModelSchema),
  has_more: z.boolean(),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
});

/** The list at `/v1/models` for Codex. */
export const codexListSchema = z.strictObject({
  models: z.array(z.looseObject({ slug: z.string(), display_name: z.string(), priority: z.number().int() })),
});

/** An error in the OpenAI shape. */
export const openaiErrorSchema = z.strictObject({
  error: z.strictObject({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string().nullable(),
  }),
});

/** An error in Google's shape. */
export const googleErrorSchema = z.strictObject({
  error: z.strictObject({
    code: z.number().int(),
    message: z.string(),
    status: z.string(),
    details: z.array(z.looseObject({ "@type": z.string() })).optional(),
  }),
});

/** The answer of `generateContent`. */
export const contentReplySchema = z.looseObject({
  candidates: z.array(z.looseObject({
    content: z.looseObject({ parts: z.array(z.looseObject({})).optional(), role: z.string().optional() }).optional(),
    finishReason: z.string().optional(),
    index: z.number().int().optional(),
  })).optional(),
  usageMetadata: z.looseObject({
    promptTokenCount: z.number().int().optional(),
    candidatesTokenCount: z.number().int().optional(),
    totalTokenCount: z.number().int().optional(),
  }).optional(),
  modelVersion: z.string().optional(),
});

/** The answer of `streamGenerateContent` without `alt=sse`. */
export const contentArraySchema = z.array(z.union([googleErrorSchema, contentReplySchema]));

/** The answer of `countTokens`. */
export const tokenCountSchema = z.strictObject({ totalTokens: z.number().int() });

/** A model at `/v1beta/models`. */
export const geminiModelSchema = z.strictObject({
  name: z.string().describe("models/<vendor>/<model_name>"),
  baseModelId: z.string(),
  version: z.string(),
  displayName: z.string(),
  description: z.string(),
  inputTokenLimit: z.number().int(),
  outputTokenLimit: z.number().int(),
  supportedGenerationMethods: z.array(z.string()),
  thinking: z.boolean(),
});

/** The list at `/v1beta/models`. */
export const geminiListSchema = z.strictObject({
  models: z.array(geminiModelSchema),
  nextPageToken: z.string().optional(),
});

/** An error in the Anthropic shape. */
export const anthropicErrorSchema = z.strictObject({
  type: z.literal("error"),
  error: z.strictObject({
    type: z.string(),
    message: z.string(),
    details: z.strictObject({ error_code: z.string() }).optional().describe("Only in errors about threads"),
  }),
  request_id: z.string(),
});

/** The answer of `/v1/chat/completions` if it is not streamed. */
export const chatReplySchema = z.looseObject({
  id: z.string(),
  object: z.literal("chat.completion"),
  created: z.number().int(),
  model: z.string(),
  choices: z.array(z.looseObject({
    index: z.number().int(),
    message: z.looseObject({
      role: z.literal("assistant"),
      content: z.string().nullable(),
      refusal: z.string().nullish().describe("Absent if the model's host omits it"),
    }),
    finish_reason: z.enum(["stop", "length", "tool_calls", "content_filter", "function_call"]),
  })),
  usage: z.looseObject({
    prompt_tokens: z.number().int(),
    completion_tokens: z.number().int(),
    total_tokens: z.number().int(),
  }),
});

/** The answer of `/v1/responses/compact`. */
export const compactionSchema: z.ZodType = z.looseObject({
  id: z.string(),
  object: z.literal("response.compaction"),
  created_at: z.number().int(),
  output: z.array(z.looseObject({ type: z.enum(["message", "compaction"]) })),
  usage: z.looseObject({ input_tokens: z.number().int(), output_tokens: z.number().int() }),
});

/** The answer of `/v1/responses/input_tokens`. */
export const inputTokensSchema: z.ZodType = z.looseObject({
  object: z.literal("response.input_tokens"),
  input_tokens: z.number().int(),
});

/** The answer of `/v1/responses` if it is not streamed. */
export const responseSchema = z.looseObject({
  id: z.string(),
  object: z.literal("response"),
  created_at: z.number().int(),
  model: z.string(),
  status: z.enum(["completed", "failed", "in_progress", "cancelled", "incomplete"]),
  output: z.array(z.looseObject({ type: z.string(), id: z.string() })),
  usage: z.looseObject({
    input_tokens: z.number().int(),
    output_tokens: z.number().int(),
    total_tokens: z.number().int(),
  }).nullable(),
});

/** The answer of `/anthropic/v1/messages` if it is not streamed. */
export const messageSchema = z.looseObject({
  id: z.string(),
  type: z.literal("message"),
  role: z.literal("assistant"),
  model: z.string(),
  content: z.array(z.looseObject({ type: z.string() })),
  stop_reason: z.string(),
  stop_sequence: z.string().nullable(),
  usage: z.looseObject({ input_tokens: z.number().int(), output_tokens: z.number().int() }),
});

/** The answer of `/anthropic/v1/messages/count_tokens`. */
export const countReplySchema = z.strictObject({ input_tokens: z.number().int() });

const numInputImages = z.number().int().optional().describe("Edits only: number of input images");

/** The answer of the image endpoints if it is not streamed. */
export const imageResultSchema = z.strictObject({
  created: z.number().int(),
  data: z.array(z.strictObject({ b64_json: z.string(), index: z.number().int() })),
  model: z.string(),
  size: z.string().describe("As requested; the header x-sluice-image-size has the actual size"),
  quality: z.string().describe("As requested"),
  usage: z.strictObject({
    input_tokens: z.number().int(),
    input_tokens_details: z.strictObject({
      text_tokens: z.number().int(),
      image_tokens: z.number().int().optional()
        .describe("Tokens of uploaded images, if the model has a price for them and the upstream reports them"),
    }),
    output_tokens: z.number().int(),
    total_tokens: z.number().int(),
    num_input_images: numInputImages,
  }).describe("What is billed"),
  num_input_images: numInputImages,
});

const amount = z.string().regex(/^-?\d+(\.\d{1,12})?$/).describe("USD, exact, as a decimal string");
const period = z.enum(["day", "week", "month", "total"]);

/** The answer of `/v1/usage`. */
export const ownUsageSchema = z.strictObject({
  object: z.literal("usage"),
  key: z.strictObject({ id: z.string(), name: z.string(), group: z.string() }),
  spent: z.array(z.strictObject({ period, since: z.iso.datetime(), spent_usd: amount }))
    .describe("Costs of this key's requests today and this month (UTC)"),
  budgets: z.array(z.strictObject({
    owner: z.enum(["key", "group"]).describe(
      "`key`: the budget of this key; `group`: the budget shared by all keys of its group",
    ),
    period,
    budget_usd: amount,
    spent_usd: amount.optional().describe("Absent for a group's budget"),
    held_usd: amount.optional().describe("Held for running requests; absent for a group's budget"),
    left_usd: amount.describe("Negative if the budget was lowered below the amount already spent"),
    resets_at: z.iso.datetime().nullable().describe("Start of the next period; null for a budget that never resets"),
  })),
  user_budget: z.strictObject({
    period,
    budget_usd: amount,
    require_user: z.boolean().describe("Whether each request must name its end user"),
    user: z.string().optional().describe(
      "The end user named by this request; absent, with the following members, if it names none",
    ),
    spent_usd: amount.optional(),
    held_usd: amount.optional(),
    left_usd: amount.optional(),
    resets_at: z.iso.datetime().nullable().optional(),
  }).nullable().describe("Budget of each end user of this key; null if there is none"),
  limits: z.array(z.strictObject({
    owner: z.enum(["key", "group", "model"]).describe(
      "`key`: limit of this key; `group`: shared by all keys of its group; `model`: shared by all keys",
    ),
    model: z.string().optional().describe("Id of the model that the limit applies to"),
    unit: z.enum(["requests", "tokens", "concurrency"])
      .describe("Requests or tokens within 60 seconds, or concurrent requests"),
    limit: z.number().int().min(0),
    used: z.number().int().min(0).describe("Used by all keys that share the limit"),
    left: z.number().int().min(0),
    resets_at: z.iso.datetime().nullable()
      .describe("Time at which the whole limit is available again; null if it is available now, or for concurrency"),
  })).describe("Limits that only report are left out"),
});

/** The answer of `/v1/usage`. It does not reveal what other keys spend. */
export type OwnUsage = z.output<typeof ownUsageSchema>;

/** The answer of `/v1/embeddings`. */
export const embeddingListSchema = z.strictObject({
  object: z.literal("list"),
  data: z.array(z.strictObject({
    object: z.literal("embedding"),
    index: z.number().int(),
    embedding: z.union([z.array(z.number()), z.string()])
      .describe("Numbers, or base64 of little-endian 32-bit floats"),
  })),
  model: z.string(),
  usage: z.strictObject({ prompt_tokens: z.number().int(), total_tokens: z.number().int() }).describe("What is billed"),
});

/** The answer of `/v1/rerank`. */
export const rerankingSchema = z.looseObject({
  model: z.string(),
  results: z.array(z.looseObject({
    index: z.number().int().describe("Index of the document in the request"),
    relevance_score: z.number(),
    document: z.union([z.string(), z.looseObject({})]).nullish(),
  })),
  usage: z.looseObject({ total_tokens: z.number().int().optional() }).nullish(),
});

/** The answer of the health endpoints. */
export const healthSchema = z.strictObject({
  status: z.string(),
  message: z.string().optional().describe("The reasons in one sentence; absent if the status is `ok`"),
  loop_lag_ms: z.number().int().min(0).optional().describe("Current delay of the event loop"),
  loop_lag_max_ms: z.number().int().min(0).optional().describe(
    "Longest delay of the event loop in the last 15 seconds",
  ),
});

/** An API description. */
export const describedSchema = z.looseObject({ openapi: z.string() });
