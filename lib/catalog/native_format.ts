/** Formats a model for `/anthropic/v1/models`, in Anthropic's native format. */
import type { JsonObject } from "../json/mod.ts";
import { architecture, pricing, topProvider } from "./compatible_format.ts";
import type { Model } from "./model.ts";

/** The features of a model at Anthropic itself that the caller may use. */
export interface NativeFeatures {
  /** True if Anthropic serves the model. */
  isAnthropics: boolean;
  /** Hosted tools that the caller may use. */
  hostedTools: readonly string[];
}

/** Formats a model for the native list, with the prices at `now` and without its targets. */
export function nativeModel(model: Model, now: number, features: NativeFeatures): JsonObject {
  return {
    type: "model",
    id: model.id,
    display_name: model.name,
    created_at: timeOf(model.created * 1000),
    // A model's line must not be inferred from its id.
    line: null,
    lifecycle: lifecycleOf(model),
    deprecated_at: null,
    retires_at: model.expiration_date === null ? null : timeOf(Date.parse(model.expiration_date)),
    capabilities: capabilities(model, features),
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

/** Returns the stage of a model: those that expire are deprecated. */
export function lifecycleOf({ expiration_date }: Model): "active" | "deprecated" {
  return expiration_date === null ? "active" : "deprecated";
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace(".000Z", "Z");
}

/** Formats the features of a model as in Anthropic's `ModelCapabilities`, which has all members of every model. */
function capabilities(
  { architecture: { input_modalities: input }, supported_parameters: parameters, reasoning }: Model,
  { isAnthropics, hostedTools }: NativeFeatures,
): JsonObject {
  const [webSearch, codeExecution] = ["web_search", "code_execution"].map((name) =>
    isAnthropics && hostedTools.includes(name)
  );
  const { efforts = [], modes = [], mandatory = false } = reasoning ?? {};
  const levels = (["low", "medium", "high", "xhigh", "max"] as const).map((level) =>
    [level, support(efforts.includes(level))] as const
  );
  return {
    batch: support(false),
    citations: support(isAnthropics),
    code_execution: support(codeExecution),
    context_management: {
      ...support(isAnthropics),
      clear_thinking_20251015: null,
      clear_tool_uses_20250919: null,
      compact_20260112: null,
    },
    effort: { ...support(efforts.length > 0), ...Object.fromEntries(levels) },
    image_input: support(input.includes("image")),
    pdf_input: support(input.includes("file")),
    server_tools: {
      ...support(webSearch || codeExecution),
      code_execution: support(codeExecution),
      web_search: support(webSearch),
    },
    structured_outputs: support(["response_format", "structured_outputs"].some((name) => parameters.includes(name))),
    thinking: {
      ...support(reasoning !== undefined),
      types: {
        adaptive: support(modes.includes("adaptive")),
        between_tools: support(false),
        disabled: support(!mandatory),
        enabled: support(modes.includes("manual")),
      },
    },
  };
}

function support(supported = false): JsonObject {
  return { supported };
}
