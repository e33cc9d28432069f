/** Makes a catalog row for a model that the catalog does not have. */
import { type Model, modelSchema } from "../catalog/model.ts";
import { EFFORTS } from "../protocols/canonical/types.ts";

/** Returns a row for any model id. It supports everything, because nothing is known about the model. */
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
