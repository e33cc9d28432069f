/** Writes answers with reranked documents. */
import { spliceMembers } from "../json/mod.ts";
import { jsonText } from "../server/json_response.ts";
import type { RetrievalAnswer } from "./send.ts";
import type { SettledRetrieval } from "./settle.ts";
import type { Reranking, RerankRequest } from "./types.ts";

/** Writes the upstream's answer with the public id of the model and, if it reports no tokens, the counted ones. */
export function writeReranking(
  { answer: { body, tokens: reported }, candidate: { model } }: RetrievalAnswer<RerankRequest, Reranking>,
  { tokens }: SettledRetrieval,
): Response {
  return jsonText(spliceMembers(body, {
    model: JSON.stringify(model.id),
    ...(reported === undefined && { usage: JSON.stringify({ prompt_tokens: tokens, total_tokens: tokens }) }),
  }));
}
