/** Writes answers with reranked documents. */
import { isObject, spliceMembers } from "../json/mod.ts";
import { JsonAnswer } from "../server/json_response.ts";
import type { RetrievalAnswer } from "./send.ts";
import type { SettledRetrieval } from "./settle.ts";
import type { Reranking, RerankRequest } from "./types.ts";

/**
 * Writes the upstream's answer with the public id of the model. Cohere's clients need `meta`, and Jina's clients need
 * `usage`, so a missing one is created from the billed usage.
 */
export function writeReranking(
  { answer: { body, value }, candidate: { model } }: RetrievalAnswer<RerankRequest, Reranking>,
  { tokens, searches }: SettledRetrieval,
): Response {
  return new JsonAnswer(spliceMembers(body, {
    model: JSON.stringify(model.id),
    ...(!isObject(value.usage) && { usage: JSON.stringify({ prompt_tokens: tokens, total_tokens: tokens }) }),
    ...(!isObject(value.meta) && { meta: JSON.stringify({ billed_units: { search_units: searches } }) }),
  }));
}
