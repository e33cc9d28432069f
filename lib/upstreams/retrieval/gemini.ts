/** Embeddings of Gemini: `batchEmbedContents` (https://ai.google.dev/api/embeddings). */
import { GatewayError } from "../../errors.ts";
import { isObject, writeJson } from "../../json/mod.ts";
import type { EmbeddingInput, Embeddings, EmbeddingsRequest, RetrievalCall } from "../../retrieval/types.ts";
import { readVectors, unreadableAnswer, type WantedVectors } from "./read_vectors.ts";
import { dropUnsupportedMembers } from "./unsupported_members.ts";

/** Members of the body that are translated here or read by the gateway. */
const SUPPORTED_MEMBERS: ReadonlySet<string> = new Set([
  "model",
  "input",
  "dimensions",
  "encoding_format",
  "models",
  "provider",
]);

/**
 * Writes the body of a batch.
 * @throws {GatewayError} `invalid` with fault `unfit`, for inputs that are tokens, and for unsupported members if the
 * client requires all parameters
 */
export function writeGeminiBatch(
  call: RetrievalCall<EmbeddingsRequest>,
  batch: readonly EmbeddingInput[],
): string {
  const { request: { dimensions }, target } = call;
  dropUnsupportedMembers(call, SUPPORTED_MEMBERS);
  const requests = batch.map((input) => {
    if (typeof input !== "string") {
      throw new GatewayError("invalid", "Cannot embed tokens with this model: send texts", {
        param: "input",
        fault: "unfit",
      });
    }
    return {
      model: `models/${target.model}`,
      content: { parts: [{ text: input }] },
      ...(dimensions !== undefined && { outputDimensionality: dimensions }),
    };
  });
  return writeJson({ requests });
}

/** Reads the answer to a batch, whose vectors are in the order of its requests. @throws {GatewayError} `upstream` */
export async function readGeminiBatch(text: string, wanted: WantedVectors): Promise<Embeddings> {
  const answer = await readVectors(text, "values", wanted);
  const { embeddings, usageMetadata: usage } = answer.rest;
  const isInOrder = Array.isArray(embeddings) && embeddings.length === wanted.count &&
    embeddings.every((item, index) => isObject(item) && item.values === index);
  if (!isInOrder) throw unreadableAnswer("expected one vector for each input");
  const tokens = isObject(usage) && typeof usage.promptTokenCount === "number" ? usage.promptTokenCount : undefined;
  return { vectors: answer.vectors, ...(tokens !== undefined && { tokens }) };
}
