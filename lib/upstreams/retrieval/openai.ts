/** Embeddings in OpenAI's protocol, and reranking in the shape that Cohere, Jina and vLLM share. */
import type { Target } from "../../catalog/model.ts";
import { type Edits, isObject, type Json, type JsonObject, spliceBody, writeJson } from "../../json/mod.ts";
import type {
  EmbeddingInput,
  Embeddings,
  EmbeddingsRequest,
  Reranking,
  RerankRequest,
  RetrievalBody,
  RetrievalCall,
} from "../../retrieval/types.ts";
import type { WholeAnswer } from "../answers.ts";
import type { ResendableBody } from "../transport.ts";
import { readVectors, unreadableAnswer, type WantedVectors } from "./read_vectors.ts";

/** Optional members that clients may set to null. Such members are removed, because some hosts refuse null. */
const NULLABLE = ["dimensions", "encoding_format", "user", "top_n", "return_documents"];

/** Maximum number of searches of one request that an upstream can plausibly report. */
const MAX_SEARCHES = 1_000_000;

/** Returns the edits that every host needs: its own model id, and no members that are only for the gateway. */
function sharedEdits({ value }: RetrievalBody, { model }: Target): Edits {
  const nulls = NULLABLE.filter((name) => value[name] === null).map((name) => [name, undefined]);
  return { ...Object.fromEntries(nulls), provider: undefined, models: undefined, model: JSON.stringify(model) };
}

/**
 * Writes the body of a request for embeddings.
 * @param batch some of the inputs; absent: all, as the client wrote them
 */
export function writeEmbeddingsBody(
  { request, model, target }: RetrievalCall<EmbeddingsRequest>,
  batch?: readonly EmbeddingInput[],
): ResendableBody {
  // Hosts whose vectors have a fixed length refuse the parameter.
  const isFixed = request.dimensions !== undefined && model.embedding?.min_dimensions === undefined;
  return spliceBody(request.body, {
    ...sharedEdits(request.body, target),
    ...(isFixed && { dimensions: undefined }),
    ...(batch !== undefined && { input: writeJson(batch as Json) }),
  });
}

/** Reads an answer with embeddings. @throws {GatewayError} `upstream` */
export async function readEmbeddingsAnswer(text: string, wanted: WantedVectors): Promise<Embeddings> {
  const answer = await readVectors(text, "embedding", wanted);
  const { data, usage } = answer.rest;
  const byIndex = new Map<Json, string>();
  for (const [position, item] of (Array.isArray(data) ? data : []).entries()) {
    if (!isObject(item) || typeof item.embedding !== "number") continue;
    const vector = answer.vectors[item.embedding];
    if (vector !== undefined) byIndex.set(item.index ?? position, vector);
  }
  const vectors = Array.from({ length: wanted.count }, (_, index) => {
    const vector = byIndex.get(index);
    if (vector === undefined) throw unreadableAnswer("expected one vector for each input");
    return vector;
  });
  return { vectors, ...tokensOf(usage) };
}

/** Writes the body of a request to rerank. */
export function writeRerankBody({ request, target }: RetrievalCall<RerankRequest>): ResendableBody {
  return spliceBody(request.body, sharedEdits(request.body, target));
}

/** Reads an answer with reranked documents. @throws {GatewayError} `upstream` */
export function readRerankAnswer(answer: WholeAnswer, { documents }: RerankRequest): Reranking {
  const { value } = answer;
  const isResult = (result: Json) =>
    isObject(result) && typeof result.relevance_score === "number" && Number.isInteger(result.index) &&
    documents[result.index as number] !== undefined;
  if (!Array.isArray(value.results) || !value.results.every(isResult)) {
    throw unreadableAnswer("expected a list of results, each with the index of a document and its relevance_score");
  }
  if (value.results.length > documents.length) throw unreadableAnswer("it has more results than documents");
  const meta = isObject(value.meta) ? value.meta : {};
  const billed = isObject(meta.billed_units) ? meta.billed_units : {};
  const { search_units: searches } = billed;
  const isPlausible = Number.isInteger(searches) && Number(searches) > 0 && Number(searches) <= MAX_SEARCHES;
  const tokens = isObject(meta.tokens) ? meta.tokens : undefined;
  const usage = isObject(value.usage) ? value.usage : tokens;
  return { body: answer, value, ...tokensOf(usage), ...(isPlausible && { searches: Number(searches) }) };
}

/** Returns the tokens of the input, which have different names at OpenAI, Jina and Cohere. */
function tokensOf(usage: Json | undefined): { tokens?: number } {
  const { prompt_tokens, total_tokens, input_tokens }: JsonObject = isObject(usage) ? usage : {};
  const tokens = [prompt_tokens, total_tokens, input_tokens].find((count) => typeof count === "number" && count > 0);
  return typeof tokens === "number" ? { tokens } : {};
}
