/** A row of the catalog: the one place where facts about a model live. Member names are those of the wire. */
import { z } from "zod";
import { EFFORTS } from "../protocols/canonical/types.ts";
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

/** Rate and concurrency limits. Absent members do not limit. */
export const limitsSchema = z.strictObject({
  requests_per_minute: z.number().int().min(1).max(1_000_000).optional()
    .describe("Most requests within any 60 seconds"),
  tokens_per_minute: z.number().int().min(1).max(1_000_000_000).optional()
    .describe("Most tokens within any 60 seconds: estimated when a request begins, exact when it ends"),
  concurrency: z.number().int().min(1).max(1_000_000).optional().describe("Most requests at one time"),
  report_only: z.boolean().default(false)
    .describe("Only report what would be refused: a log line, and nothing for the client"),
});

/** Rate and concurrency limits. */
export type Limits = z.output<typeof limitsSchema>;

/** Differences of an image model's host from OpenAI's newest models. An absent member is false. */
const imageHostSchema = z.strictObject({
  single: z.boolean().optional().describe("Makes one image per request: several are asked for in parallel requests"),
  addresses: z.boolean().optional()
    .describe("Answers with addresses of images unless `response_format` asks for base64"),
  own_format: z.boolean().optional()
    .describe("Takes no `output_format`: images come as the host likes and are converted"),
  whole: z.boolean().optional().describe("Cannot stream"),
});

/** Vectors of an embedding model. */
const embeddingSchema = z.strictObject({
  dimensions: z.number().int().min(1).max(65_536).describe("Length of its vectors, and the most that may be asked for"),
  min_dimensions: z.number().int().min(1).max(65_536).optional()
    .describe("Fewest `dimensions` that a request may ask for; absent: its vectors have one length"),
  max_input_tokens: z.number().int().min(1).optional().describe("Most tokens of one input; absent: the context length"),
  space: z.string().min(1).max(128).optional().describe(
    "Name of the space of its vectors: a request fails over only to models that name the same one. Absent: to none",
  ),
});

/** A target of a model: an upstream and the model's id there. */
const targetSchema = z.strictObject({
  upstream: z.string().min(1).describe("Name of a member of `upstreams`"),
  model: z.string().min(1).describe("The model's id at that upstream"),
  protocol: z.enum(["chat", "responses", "messages", "gemini"]).optional()
    .describe("Protocol to speak to the upstream; absent: the upstream's own"),
  images: imageHostSchema.optional().describe("For image models: how the host differs from OpenAI's newest ones"),
  batch: z.number().int().min(1).max(2_048).optional()
    .describe("For embedding models: most inputs that the host takes at once; absent: as its vendor does"),
  timeouts: ownTimeoutsSchema.optional().describe("Where its answers may take another time than the model's elsewhere"),
  pricing: z.strictObject(PRICES).optional()
    .describe("Prices that the vendor charges you, for your margin; customers pay the model's"),
  priority: z.number().int().min(0).default(0).describe("Lower goes first"),
  weight: z.number().min(0).default(1).describe("Share among targets of equal priority"),
});

/** Reasoning abilities of a model. */
const modelReasoningSchema = z.strictObject({
  modes: z.array(z.enum(["manual", "adaptive"])).min(1)
    .describe("manual: takes a token budget; adaptive: decides by itself, steered by an effort"),
  efforts: z.array(z.enum(EFFORTS)).default(["low", "medium", "high"])
    .describe("Depths of reasoning it can be asked for"),
  mandatory: z.boolean().optional().describe("True: it cannot be switched off"),
});

/** Features of a model that no parameter names. An absent member is false. */
const featuresSchema = z.strictObject({
  prefill: z.boolean().optional().describe("Continues an answer that the conversation ends with"),
  system_messages: z.boolean().optional()
    .describe("Messages protocol: takes system messages in the middle of a conversation"),
  exclusive_sampling: z.boolean().optional().describe("Takes temperature or top_p, not both at once"),
});

/** Parameters that models of a kind usually accept. */
const USUAL_PARAMETERS = {
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

/** Parameters that rows of a kind list where they name none. */
function usualParameters(kind: ModelKind, hasDimensions: boolean): string[] {
  if (kind === "embedding" && hasDimensions) return ["dimensions", ...USUAL_PARAMETERS.embedding];
  return [...USUAL_PARAMETERS[kind === "other" ? "text" : kind]];
}

/** A catalog row as the operator writes it. */
export const modelSchema = z.strictObject({
  id: modelIdSchema.describe("Public id: `<vendor>/<model_name>`"),
  canonical_slug: z.string().min(1).optional()
    .describe("Permanent id of this version, which requests may name too; absent: the id"),
  aliases: z.array(aliasSchema).max(64).default([])
    .describe("More names that requests may use, with or without a vendor, such as `gpt-5`"),
  name: z.string().min(1).optional().describe("Display name; absent: the id"),
  description: z.string().default("").describe("What the model can do"),
  created: z.number().int().min(0).max(253_402_300_799).describe("Unix time of addition, in seconds"),
  owned_by: z.string().min(1).optional().describe("Label of the backend; absent: the vendor part of the id"),
  context_length: z.number().int().min(1).describe("Maximum context window, in tokens"),
  architecture: z.strictObject({
    modality: z.string().optional().describe("Absent: made of the modalities, such as `text+image->text`"),
    input_modalities: z.array(z.string()).min(1).default(["text"]).describe("What it takes: text, image, file"),
    output_modalities: z.array(z.string()).min(1).default(["text"]).describe(
      "Output of the model: text, image, embeddings or rerank",
    ),
    tokenizer: z.string().default("Other").describe("Name of its tokenizer"),
    instruct_type: z.string().nullable().default(null).describe("Name of its instruction format"),
  }).prefault({}).describe("What the model takes and gives"),
  pricing: z.strictObject(PRICES).describe("USD per token"),
  price_changes: z.array(priceChangeSchema).default([])
    .describe("Prices that take the place of `pricing` from a moment on; later ones need not be in order"),
  limits: limitsSchema.optional().describe("Limits of all requests for this model together"),
  on_disconnect: z.enum(["auto", "cancel", "drain"]).default("auto")
    .describe(
      "When a client leaves: cancel the upstream and bill what was sent, or drain it: read it to its end and bill all " +
        "of it; auto drains only where the bytes sent do not show what the answer cost",
    ),
  top_provider: z.strictObject({
    context_length: z.number().int().min(1).optional().describe("Absent: the model's"),
    max_completion_tokens: z.number().int().min(1).optional().describe("Absent: the context length"),
    is_moderated: z.boolean().default(false).describe("Whether the backend moderates content"),
  }).prefault({}).describe("Limits of the backend"),
  per_request_limits: z.strictObject({
    prompt_tokens: z.number().int().min(0).describe("Most tokens of input"),
    completion_tokens: z.number().int().min(0).describe("Most tokens of output"),
  }).nullable().default(null).describe("Shown in the catalog"),
  supported_parameters: z.array(z.string()).optional()
    .describe("API parameters it accepts; absent: the usual ones of a model of its kind"),
  default_parameters: z.record(z.string(), z.number().nullable()).nullable().default(null)
    .describe("Parameters it uses where a request names none; shown in the catalog"),
  expiration_date: z.iso.date({ error: 'Expected a date, such as "2026-12-31"' }).nullable().default(null)
    .describe("Day, in UTC, from whose beginning on the model is neither listed nor served"),
  reasoning: modelReasoningSchema.optional().describe("Absent: the model does not reason"),
  embedding: embeddingSchema.optional().describe("For embedding models: its vectors"),
  features: featuresSchema.optional().describe("What is special about it"),
  timeouts: ownTimeoutsSchema.optional()
    .describe("Where its answers may take another time than the upstream's: its images, or its long thoughts"),
  targets: z.array(targetSchema).min(1).describe("Where its requests go"),
}).transform((row) => {
  const vendor = row.id.slice(0, row.id.indexOf("/"));
  const { input_modalities: input, output_modalities: output } = row.architecture;
  const kind = kindOfModalities(output);
  const makes = kind === "image" ? "image" : "text";
  const parameters = row.supported_parameters ?? usualParameters(kind, row.embedding?.min_dimensions !== undefined);
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

/** A catalog row with every default filled in; `price_changes` in the order of time, `from` in Unix milliseconds. */
export type Model = z.output<typeof modelSchema>;

/** One place a model's requests may go to. */
export interface Target extends Omit<z.output<typeof targetSchema>, "pricing"> {
  /** Prices that the vendor charges the operator; absent: unknown. */
  readonly pricing?: Pricing;
  /** The model row, for targets whose health is that of the row: those of the embedded upstream. */
  readonly row?: string;
}
