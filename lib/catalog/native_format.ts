/** Formats a model for `/anthropic/v1/models`, in Anthropic's native format. */
import type { JsonObject } from "../json/mod.ts";
import { architecture, pricing, topProvider } from "./compatible_format.ts";
import type { Model } from "./model.ts";

/** Formats a model for the native list, with the prices at `now` and without its targets. */
export function nativeModel(model: Model, now: number): JsonObject {
  return {
    type: "model",
    id: model.id,
    display_name: model.name,
    created_at: new Date(model.created * 1000).toISOString().replace(".000Z", "Z"),
    owned_by: model.owned_by,
    canonical_slug: model.canonical_slug,
    description: model.description,
    context_length: model.context_length,
    // Anthropic's names of the limits, by which clients compact conversations in time.
    max_input_tokens: model.context_length,
    max_tokens: model.top_provider.max_completion_tokens,
    architecture: architecture(model),
    pricing: pricing(model, now),
    top_provider: topProvider(model),
    supported_parameters: model.supported_parameters,
    expiration_date: model.expiration_date,
  };
}
