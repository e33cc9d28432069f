/** Writes the answers with embeddings and with reranked documents. */
import { byteStream } from "../images/json_chunks.ts";
import { isObject, spliceMembers } from "../json/mod.ts";
import { LONG_TEXT_CHARS } from "../scheduler.ts";
import { JsonAnswer } from "../server/json_response.ts";
import type { RouteContext } from "../server/router.ts";
import type { RetrievalAnswer } from "./send.ts";
import type { SettledRetrieval } from "./settle.ts";
import type { Embeddings, EmbeddingsRequest, Reranking, RerankRequest } from "./types.ts";

/** Writes an answer with the vectors unchanged. A large answer is written in chunks. */
export function writeEmbeddings(
  { answer: { vectors }, candidate: { model } }: RetrievalAnswer<EmbeddingsRequest, Embeddings>,
  { tokens }: SettledRetrieval,
  { gateway, timers }: RouteContext,
): Response {
  const head = '{"object":"list","data":[';
  const items = vectors.map((vector, index) =>
    `${index > 0 ? "," : ""}{"object":"embedding","index":${index},"embedding":${vector}}`
  );
  const usage = JSON.stringify({ prompt_tokens: tokens, total_tokens: tokens });
  const pieces = [head, ...items, `],"model":${JSON.stringify(model.id)},"usage":${usage}}`];
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (length <= LONG_TEXT_CHARS) return new JsonAnswer(pieces.join(""));
  const { answer_unread_ms: unreadMs } = gateway.config.resource_limits;
  return new Response(byteStream(pieces, { unreadMs, timers, ended() {} }), {
    // All characters are ASCII.
    headers: { "content-type": "application/json", "content-length": String(length) },
  });
}

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
