/** Formats a model for `/v1/models`. */
import type { JsonObject } from "../json/mod.ts";
import type { Model } from "./model.ts";
import { pricingAt } from "./catalog.ts";

/** Formats a model for the compatible list, with the prices at `now` and without its targets. */
export function compatibleModel(model: Model, now: number): JsonObject {
  return {
    id: model.id,
    object: "model",
    created: model.created,
    owned_by: model.owned_by,
    canonical_slug: model.canonical_slug,
    name: model.name,
    description: model.description,
    context_length: model.context_length,
    architecture: architecture(model),
    pricing: pricing(model, now),
    top_provider: topProvider(model),
    per_request_limits: model.per_request_limits,
    supported_parameters: model.supported_parameters,
    default_parameters: model.default_parameters,
    expiration_date: model.expiration_date,
    ...(model.embedding !== undefined && { embedding: embedding(model, model.embedding) }),
  };
}

/** Formats the vector length, the maximum input tokens and the vector space of an embedding model. */
function embedding({ context_length }: Model, { space, ...sizes }: NonNullable<Model["embedding"]>): JsonObject {
  return {
    dimensions: sizes.dimensions,
    ...(sizes.min_dimensions !== undefined && { min_dimensions: sizes.min_dimensions }),
    max_input_tokens: sizes.max_input_tokens ?? context_length,
    space: space ?? null,
  };
}

/** Formats the modalities of a model, for this and the native format. */
export function architecture({ architecture }: Model): JsonObject {
  return {
    modality: architecture.modality,
    input_modalities: architecture.input_modalities,
    output_modalities: architecture.output_modalities,
    tokenizer: architecture.tokenizer,
    instruct_type: architecture.instruct_type,
  };
}

/**
 * Formats the prices at `now` (Unix milliseconds), for this and the native format: USD per token, as decimal strings.
 */
export function pricing(model: Model, now: number): JsonObject {
  const pricing = pricingAt(model, now);
  return {
    prompt: pricing.prompt,
    completion: pricing.completion,
    input_cache_read: pricing.input_cache_read,
    input_cache_write_5m: pricing.input_cache_write_5m,
    input_cache_write_1h: pricing.input_cache_write_1h,
    ...(pricing.input_image !== undefined && { input_image: pricing.input_image }),
    ...(pricing.request !== undefined && { request: pricing.request }),
  };
}

/** Formats the token limits, for this and the native format. */
export function topProvider({ top_provider }: Model): JsonObject {
  return {
    context_length: top_provider.context_length,
    max_completion_tokens: top_provider.max_completion_tokens,
    is_moderated: top_provider.is_moderated,
  };
}
