/** The embedded models as rows of the catalog, and the names of their targets. */
import { EFFORTS } from "../protocols/canonical/types.ts";
import { type Model, type ModelKind, modelSchema } from "./model.ts";

/** Name of the built-in upstream. */
export const EMBEDDED_UPSTREAM = "embedded";

/** Target models of the embedded upstream, by kind. */
export const EMBEDDED_TARGETS: Readonly<Record<Exclude<ModelKind, "other">, readonly string[]>> = {
  text: ["echo", "fault"],
  image: ["canvas"],
  embedding: ["embed", "fault"],
  rerank: ["rerank", "fault"],
};

/** Prices of the free models. */
const FREE_PRICES = { prompt: "0", completion: "0" };

/** Prices of the image model: USD 0.75 per million tokens of the prompt, USD 4.50 per million tokens of images. */
const IMAGE_PRICES = { prompt: "0.00000075", completion: "0.0000045" };

/** Rows that every catalog has unless `embedded_models` is false. */
export const EMBEDDED_MODELS: readonly Model[] = [
  modelSchema.parse({
    id: "sluice/echo",
    name: "Sluice Echo",
    description: "Repeats the text of the last user message, and calls tools, reasons or answers in JSON on request. " +
      "Deterministic and free; not a real language model.",
    created: 1_764_547_200,
    context_length: 131_072,
    architecture: {
      input_modalities: ["text", "image", "file"],
      output_modalities: ["text"],
      tokenizer: "o200k_base",
    },
    pricing: FREE_PRICES,
    top_provider: { max_completion_tokens: 32_768 },
    reasoning: { modes: ["manual", "adaptive"], efforts: [...EFFORTS] },
    targets: [{ upstream: EMBEDDED_UPSTREAM, model: "echo" }],
  }),
  modelSchema.parse({
    id: "sluice/canvas",
    name: "Sluice Canvas",
    description:
      "Paints an image of exactly the requested size from the prompt, and edits uploaded images by keywords in the " +
      "instruction. Deterministic; not a real image model. Billed at the image prices of its catalog entry.",
    created: 1_764_547_200,
    context_length: 32_000,
    architecture: {
      input_modalities: ["text", "image"],
      output_modalities: ["image"],
      tokenizer: "o200k_base",
    },
    pricing: IMAGE_PRICES,
    targets: [{ upstream: EMBEDDED_UPSTREAM, model: "canvas" }],
  }),
  modelSchema.parse({
    id: "sluice/embed",
    name: "Sluice Embed",
    description: "Embeds texts by hashing their words and letters: texts with the same words have similar vectors. " +
      "Deterministic and free; it knows no synonyms.",
    created: 1_764_547_200,
    context_length: 8_192,
    architecture: { input_modalities: ["text"], output_modalities: ["embeddings"], tokenizer: "o200k_base" },
    pricing: FREE_PRICES,
    embedding: { dimensions: 1_536, min_dimensions: 64, max_input_tokens: 8_192, space: "sluice/embed" },
    targets: [{ upstream: EMBEDDED_UPSTREAM, model: "embed" }],
  }),
  modelSchema.parse({
    id: "sluice/rerank",
    name: "Sluice Rerank",
    description:
      "Ranks documents by the number of words they share with the query. Deterministic and free; it knows no synonyms.",
    created: 1_764_547_200,
    context_length: 131_072,
    architecture: { input_modalities: ["text"], output_modalities: ["rerank"], tokenizer: "o200k_base" },
    pricing: FREE_PRICES,
    targets: [{ upstream: EMBEDDED_UPSTREAM, model: "rerank" }],
  }),
];
