/** Sizes of requests for limits and budgets, and the counted usage of upstreams that report none. */
import { Buffer } from "node:buffer";
import type { Model } from "../catalog/model.ts";
import { tokensOfBytes } from "../billing/prompt_parts.ts";
import { loadTokenCounter } from "../o200k/mod.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import type { EmbeddingInput, RetrievalRequest } from "./types.ts";

/** Most tokens that a model adds to one input: delimiters and task instructions. */
const INPUT_FRAME = 16;

/**
 * Cohere's search unit (https://cohere.com/pricing): documents per search, and tokens of a document with its query
 * beyond which it counts again.
 */
const SEARCH_DOCUMENTS = 100;
const SEARCH_TOKENS = 500;

/** Characters counted before yielding to the event loop: a few milliseconds of work. */
const CHARS_PER_TURN = 32_768;

/** The size of a request. */
export interface RetrievalSize {
  /** Expected tokens, for limits. */
  expected: number;
  /** Most tokens that can be billed. */
  maxTokens: number;
  /** Most searches that can be billed; 0 for embeddings. */
  maxSearches: number;
}

/** Most tokens of one input at a model. */
function inputLimit({ embedding, context_length }: Pick<Model, "embedding" | "context_length">): number {
  return embedding?.max_input_tokens ?? context_length;
}

/** Bytes of an input's text: byte-level tokenizers make at most one token per byte. */
function tokenBoundOf(input: EmbeddingInput): number {
  return typeof input === "string" ? Buffer.byteLength(input) : input.length;
}

/** Measures a request without a tokenizer. */
export function measureRequest(request: RetrievalRequest, model: Model): RetrievalSize {
  const limit = inputLimit(model);
  let expected = 0;
  let maxTokens = 0;
  let chunks = 0;
  const query = request.kind === "rerank" ? tokenBoundOf(request.query) : 0;
  for (const input of request.kind === "rerank" ? request.documents : request.inputs) {
    const tokens = query + tokenBoundOf(input);
    expected += Math.min(limit, typeof input === "string" ? tokensOfBytes(tokens) : tokens);
    maxTokens += Math.min(limit, tokens + INPUT_FRAME);
    if (request.kind === "rerank") chunks += Math.max(1, Math.ceil(tokens / SEARCH_TOKENS));
  }
  return { expected, maxTokens, maxSearches: Math.ceil(chunks / SEARCH_DOCUMENTS) };
}

/** A counter of o200k tokens that yields to the event loop between inputs. */
export async function pacedCounter(): Promise<(input: EmbeddingInput) => Promise<number>> {
  const counter = await loadTokenCounter();
  let chars = 0;
  return async (input) => {
    if (typeof input !== "string") return input.length;
    chars += input.length;
    if (chars > CHARS_PER_TURN) {
      chars = 0;
      await yieldToEventLoop();
    }
    return await counter.countLong(input);
  };
}

/** Counts the o200k tokens of a request. For reranking, the query counts once per document. */
export async function countRequest(request: RetrievalRequest, model: Model): Promise<number> {
  const count = await pacedCounter();
  const limit = inputLimit(model);
  const query = request.kind === "rerank" ? await count(request.query) : 0;
  let sum = 0;
  for (const input of request.kind === "rerank" ? request.documents : request.inputs) {
    sum += Math.min(limit, query + await count(input));
  }
  return sum;
}

/** Counts the searches of a request if the upstream reports none. */
export function countSearches({ documents }: { documents: readonly string[] }): number {
  return Math.ceil(documents.length / SEARCH_DOCUMENTS);
}
