/** Catalog rows of the embedded models. */
import { EFFORTS } from "../protocols/canonical/types.ts";
import { type Model, modelSchema } from "./model.ts";

/** Name of the upstream that always exists. */
export const EMBEDDED_UPSTREAM = "embedded";

/** Models that a target of the embedded upstream may name. */
export const EMBEDDED_TARGETS: Readonly<Record<"text" | "image", readonly string[]>> = {
  text: ["echo", "fault"],
  image: ["canvas"],
};

/** The embedded language model costs nothing. */
const FREE = {
  prompt: "0",
  completion: "0",
  input_cache_read: "0",
  input_cache_write_5m: "0",
  input_cache_write_1h: "0",
};

/** Prices of images at this service, in USD per token: 0.75 per million of the prompt, 4.50 per million of images. */
const IMAGES = { prompt: "0.00000075", completion: "0.0000045" };

/** Rows that are in every catalog, unless `embedded_models` is false. */
export const EMBEDDED_MODELS: readonly Model[] = [
  modelSchema.parse({
    id: "sluice/echo",
    name: "Sluice Echo",
    description:
      "Replies with the text of the last user message, calls tools, reasons and answers in JSON on request. " +
      "Deterministic and free; it claims no intelligence.",
    created: 1_764_547_200,
    context_length: 131_072,
    architecture: {
      input_modalities: ["text", "image", "file"],
      output_modalities: ["text"],
      tokenizer: "o200k_base",
    },
    pricing: FREE,
    top_provider: { max_completion_tokens: 32_768 },
    supported_parameters: [
      "temperature",
      "top_p",
      "max_tokens",
      "stop",
      "tools",
      "tool_choice",
      "response_format",
      "reasoning",
    ],
    reasoning: { modes: ["manual", "adaptive"], efforts: [...EFFORTS] },
    targets: [{ upstream: EMBEDDED_UPSTREAM, model: "echo" }],
  }),
  modelSchema.parse({
    id: "sluice/canvas",
    name: "Sluice Canvas",
    description:
      "Paints an image from the prompt, exactly of the size asked for, and edits uploaded ones by words of the " +
      "instruction. Deterministic; it claims no artistry. Its row carries the service's prices of images.",
    created: 1_764_547_200,
    context_length: 32_000,
    architecture: {
      input_modalities: ["text", "image"],
      output_modalities: ["image"],
      tokenizer: "o200k_base",
    },
    pricing: IMAGES,
    targets: [{ upstream: EMBEDDED_UPSTREAM, model: "canvas" }],
  }),
];
