/** The catalog row of a model that is not in the catalog. */
import { type Model, modelSchema } from "../catalog/model.ts";
import { EFFORTS } from "../protocols/canonical/types.ts";

/** A model that is not in the catalog is assumed to support everything. */
export function anyModel(id: string): Model {
  return modelSchema.parse({
    id: id.includes("/") ? id : `any/${id}`,
    created: 0,
    context_length: 1_000_000,
    architecture: { input_modalities: ["text", "image", "file", "audio", "video"] },
    pricing: { prompt: "0", completion: "0" },
    supported_parameters: [
      "temperature",
      "top_p",
      "top_k",
      "min_p",
      "top_a",
      "frequency_penalty",
      "presence_penalty",
      "repetition_penalty",
      "max_tokens",
      "logit_bias",
      "logprobs",
      "top_logprobs",
      "seed",
      "stop",
      "tools",
      "tool_choice",
      "parallel_tool_calls",
      "response_format",
      "structured_outputs",
      "reasoning",
    ],
    reasoning: { modes: ["manual", "adaptive"], efforts: [...EFFORTS] },
    targets: [{ upstream: "any", model: id }],
  });
}
