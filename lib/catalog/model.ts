/** The schema of a model in the configuration and the catalog. Member names are those of the API. */
import { z } from "zod";
import { EFFORTS, PROTOCOLS } from "../protocols/canonical/types.ts";
import { priceChangeSchema, PRICES, type Pricing, wholePricing } from "./price_schema.ts";
import { ownTimeoutsSchema } from "./timeouts.ts";

/** `<vendor>/<model_name>`: ASCII, one slash. */
const modelIdSchema = z.string().max(256).regex(
  /^[A-Za-z0-9][A-Za-z0-9._-]*\/[A-Za-z0-9][A-Za-z0-9._:@+-]*$/,
  { error: 'Expected "<vendor>/<model_name>" in letters, digits and . _ - (the name also : @ +)' },
);

/** A model id, or a name without a vendor. */
const aliasSchema = z.string().max(256).regex(
  /^[A-Za-z0-9][A-Za-z0-9._:@+-]*(\/[A-Za-z0-9][A-Za-z0-9._:@+-]*)?$/,
  { error: 'Expected a name such as "gpt-5" or "openai/gpt-5", in letters, digits and . _ - : @ +' },
);

/** Rate and concurrency limits. Absent members mean no limit. */
export const limitsSchema = z.strictObject({
  requests_per_minute: z.number().int().min(1).max(1_000_000).optional()
    .describe("Maximum number of requests within any 60 seconds. Default: no limit").meta({ examples: [60] }),
  tokens_per_minute: z.number().int().min(1).max(1_000_000_000).optional()
    .describe(
      "Maximum number of tokens within any 60 seconds: estimated when a request begins, exact when it ends. Default: " +
        "no limit",
    ).meta({ examples: [200_000] }),
  concurrency: z.number().int().min(1).max(1_000_000).optional()
    .describe("Maximum number of concurrent requests. Default: no limit").meta({ examples: [10] }),
  report_only: z.boolean().default(false)
    .describe("Whether to log `limit_exceeded` instead of refusing a request"),
});

/** Rate and concurrency limits. */
export type Limits = z.output<typeof limitsSchema>;

/** Deviations of an image model's host from OpenAI's newest models. Absent members are false. */
const imageHostSchema = z.strictObject({
  single: z.boolean().optional().describe(
    "Whether it makes only one image per request. The gateway then sends parallel requests. Default: false",
  ),
  addresses: z.boolean().optional()
    .describe("Whether it answers with URLs unless `response_format` asks for base64. Default: false"),
  own_format: z.boolean().optional()
    .describe("Whether it refuses `output_format`. The gateway then converts the images. Default: false"),
  whole: z.boolean().optional().describe("Whether it cannot stream. Default: false"),
});

const embeddingSchema = z.strictObject({
  dimensions: z.number().int().min(1).max(65_536).describe(
    "Length of its vectors, and the maximum that a request may ask for",
  )
    .meta({ examples: [1536] }),
  min_dimensions: z.number().int().min(1).max(65_536).optional()
    .describe("Minimum `dimensions` that a request may ask for. If omitted, all vectors have the same length")
    .meta({ examples: [256] }),
  max_input_tokens: z.number().int().min(1).optional()
    .describe("Maximum number of tokens in one input. Default: the context length").meta({ examples: [8192] }),
  space: z.string().min(1).max(128).optional().describe(
    "Name of its vector space. Requests fall back only to models with the same name. If omitted, there is no fallback",
  ).meta({ examples: ["text-embedding-3-small"] }),
});

const targetSchema = z.strictObject({
  upstream: z.string().min(1).describe("Name from `upstreams`").meta({ examples: ["openai"] }),
  model: z.string().min(1).describe("Id of the model at that upstream").meta({ examples: ["gpt-5"] }),
  protocol: z.enum(PROTOCOLS).optional()
    .describe(
      "Protocol of requests to the upstream. Default: the client's if the upstream speaks it, else the upstream's " +
        "first one",
    ),
  images: imageHostSchema.optional().describe("For image models: how the host differs from OpenAI's newest models"),
  batch: z.number().int().min(1).max(2_048).optional()
    .describe("For embedding models: maximum number of inputs per upstream request. Default: the vendor's limit")
    .meta({ examples: [96] }),
  timeouts: ownTimeoutsSchema.optional().describe("Timeouts that differ for this target. Default: the model's"),
  pricing: z.strictObject(PRICES).optional()
    .describe("Prices that the vendor charges you, used in margin reports. Clients pay the model's `pricing`"),
  priority: z.number().int().min(0).default(0).describe("Order of targets: the lowest number is tried first"),
  weight: z.number().min(0).default(1).describe("Share of requests among targets of equal priority"),
});

const modelReasoningSchema = z.strictObject({
  modes: z.array(z.enum(["manual", "adaptive"])).min(1)
    .describe("`manual`: the request sets a token budget. `adaptive`: the model decides, guided by an effort level"),
  efforts: z.array(z.enum(EFFORTS)).default(["low", "medium", "high"])
    .describe("Effort levels that a request may specify"),
  mandatory: z.boolean().optional().describe("Whether reasoning cannot be turned off. Default: false"),
});

/** Features of a model that no parameter name expresses. Absent members are false. */
const featuresSchema = z.strictObject({
  prefill: z.boolean().optional().describe("Whether it continues a final assistant message. Default: false"),
  system_messages: z.boolean().optional()
    .describe("Whether it accepts system messages within a conversation (messages protocol). Default: false"),
  exclusive_sampling: z.boolean().optional().describe(
    "Whether it accepts `temperature` or `top_p`, but not both. Default: false",
  ),
});

/** Default `supported_parameters` by kind of model. */
const DEFAULT_PARAMETERS = {
  text: ["temperature", "top_p", "max_tokens", "stop", "tools", "tool_choice", "response_format"],
  image: ["n", "size", "quality", "output_format", "output_compression", "background", "stream"],
  embedding: ["encoding_format", "user"],
  rerank: ["top_n", "return_documents"],
};

/** Kind of a model by its output modalities: `text` if text is among them. */
export type ModelKind = "text" | "image" | "embedding" | "rerank" | "other";

/** Returns the kind of a model with these output modalities. */
export function kindOfModalities(output: readonly unknown[]): ModelKind {
  if (output.includes("text")) return "text";
  if (output.includes("image")) return "image";
  if (output.includes("embeddings")) return "embedding";
  return output.includes("rerank") ? "rerank" : "other";
}

function defaultParameters(kind: ModelKind, hasDimensions: boolean): string[] {
  if (kind === "embedding" && hasDimensions) return ["dimensions", ...DEFAULT_PARAMETERS.embedding];
  return [...DEFAULT_PARAMETERS[kind === "other" ? "text" : kind]];
}

/** A model in the configuration. Parsing fills in all defaults. */
export const modelSchema = z.strictObject({
  id: modelIdSchema.describe("Id that clients use: `<vendor>/<model_name>`").meta({ examples: ["acme/assistant"] }),
  canonical_slug: z.string().min(1).optional()
    .describe("Permanent id of this version, which requests may also use. Default: the id")
    .meta({ examples: ["acme/assistant-2025-11-01"] }),
  aliases: z.array(aliasSchema).max(64).default([])
    .describe("Alternative names that requests may use, with or without a vendor. Each name belongs to one model")
    .meta({ examples: [["gpt-5"]] }),
  name: z.string().min(1).optional().describe("Display name. Default: the id").meta({ examples: ["Acme Assistant"] }),
  description: z.string().default("").describe("What the model can do"),
  created: z.number().int().min(0).max(253_402_300_799).describe("When the model was added, as Unix time in seconds")
    .meta({ examples: [1761955200] }),
  owned_by: z.string().min(1).optional().describe(
    "Name of the host, as shown in model lists. Default: the vendor part of the id",
  )
    .meta({ examples: ["acme"] }),
  context_length: z.number().int().min(1).describe("Context window, in tokens").meta({ examples: [131072] }),
  architecture: z.strictObject({
    modality: z.string().optional().describe("Summary of the modalities. Default: derived from the two lists")
      .meta({ examples: ["text+image->text"] }),
    input_modalities: z.array(z.string()).min(1).default(["text"]).describe("Kinds of input: text, image, file").meta({
      examples: [["text", "image"]],
    }),
    output_modalities: z.array(z.string()).min(1).default(["text"]).describe(
      "Kinds of output: text, image, embeddings or rerank. They decide which endpoints serve the model",
    ).meta({ examples: [["image"]] }),
    tokenizer: z.string().default("Other").describe("Name of its tokenizer, shown in the catalog"),
    instruct_type: z.string().nullable().default(null).describe("Name of its instruction format, shown in the catalog")
      .meta({ examples: ["chatml"] }),
  }).prefault({}).describe("Input and output of the model"),
  pricing: z.strictObject(PRICES).describe("Prices that clients pay, in USD per token"),
  price_changes: z.array(priceChangeSchema).default([])
    .describe("Price changes, each with the time from which it applies. The order of the list does not matter"),
  limits: limitsSchema.optional().describe("Limits that all requests for this model share. Default: none"),
  on_disconnect: z.enum(["auto", "cancel", "drain"]).default("auto")
    .describe(
      "When a client disconnects: `cancel` stops the answer and bills the part that was sent; `drain` reads it to " +
        "its end and bills all of it. `auto` drains only if the cost cannot be determined from the part that was sent",
    ),
  top_provider: z.strictObject({
    context_length: z.number().int().min(1).optional().describe(
      "Context window at the host, in tokens. Default: the model's",
    )
      .meta({ examples: [131072] }),
    max_completion_tokens: z.number().int().min(1).optional()
      .describe("Maximum length of an answer, in tokens. Default: the context length").meta({ examples: [32768] }),
    is_moderated: z.boolean().default(false).describe("Whether the host moderates content; shown in the catalog"),
  }).prefault({}).describe("Limits set by the host"),
  per_request_limits: z.strictObject({
    prompt_tokens: z.number().int().min(0).describe("Maximum number of input tokens").meta({ examples: [100000] }),
    completion_tokens: z.number().int().min(0).describe("Maximum number of output tokens").meta({ examples: [4096] }),
  }).nullable().default(null).describe("Limits per request, shown in the catalog"),
  supported_parameters: z.array(z.string()).optional()
    .describe("API parameters that it accepts. Default: those usual for its kind of model")
    .meta({ examples: [["temperature", "max_tokens", "tools"]] }),
  default_parameters: z.record(z.string(), z.number().nullable()).nullable().default(null)
    .describe("Values it uses for parameters that a request omits, shown in the catalog")
    .meta({ examples: [{ temperature: 1 }] }),
  expiration_date: z.iso.date({ error: 'Expected a date, such as "2026-12-31"' }).nullable().default(null)
    .describe("Day on which the model is removed, at midnight UTC. Later requests get 404 with this date")
    .meta({ examples: ["2026-12-31"] }),
  reasoning: modelReasoningSchema.optional().describe("Reasoning support. If omitted, the model does not reason"),
  embedding: embeddingSchema.optional().describe("Properties of the vectors. Required for embedding models"),
  features: featuresSchema.optional().describe("Features that have no request parameter"),
  timeouts: ownTimeoutsSchema.optional()
    .describe("Timeouts that differ for this model. Default: the upstream's"),
  targets: z.array(targetSchema).min(1).describe("Upstreams that serve the model"),
}).transform((row) => {
  const vendor = row.id.slice(0, row.id.indexOf("/"));
  const { input_modalities: input, output_modalities: output } = row.architecture;
  const kind = kindOfModalities(output);
  const makes = kind === "image" ? "image" : "text";
  const parameters = row.supported_parameters ?? defaultParameters(kind, row.embedding?.min_dimensions !== undefined);
  return {
    ...row,
    vendor,
    canonical_slug: row.canonical_slug ?? row.id,
    name: row.name ?? row.id,
    owned_by: row.owned_by ?? vendor,
    supported_parameters: row.reasoning === undefined || parameters.includes("reasoning")
      ? parameters
      : [...parameters, "reasoning"],
    architecture: {
      ...row.architecture,
      modality: row.architecture.modality ?? `${input.join("+")}->${output.join("+")}`,
    },
    targets: row.targets.map(({ pricing, ...target }): Target =>
      pricing === undefined ? target : { ...target, pricing: wholePricing(pricing, makes) }
    ),
    pricing: wholePricing(row.pricing, makes),
    price_changes: row.price_changes.map(({ from, ...pricing }): Pricing & { from: number } => ({
      from: Date.parse(from),
      ...wholePricing(pricing, makes),
    }))
      .sort((a, b) => a.from - b.from),
    top_provider: {
      context_length: row.top_provider.context_length ?? row.context_length,
      max_completion_tokens: row.top_provider.max_completion_tokens ?? row.context_length,
      is_moderated: row.top_provider.is_moderated,
    },
  };
});

/** A model with all defaults. Its `price_changes` are in order of time, with `from` in Unix milliseconds. */
export type Model = z.output<typeof modelSchema>;

/** A target of a model. */
export interface Target extends Omit<z.output<typeof targetSchema>, "pricing"> {
  /** Prices that the vendor charges the operator; absent: unknown. */
  readonly pricing?: Pricing;
  /** Id of the model, for targets of the embedded upstream, so that each embedded model has a health of its own. */
  readonly row?: string;
}
