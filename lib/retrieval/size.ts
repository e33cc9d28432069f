/** Measures requests for limits and budgets, and counts the usage that an upstream does not report. */
import { Buffer } from "node:buffer";
import { inputLimit } from "../catalog/catalog.ts";
import type { Model } from "../catalog/model.ts";
import { tokensOfBytes } from "../billing/prompt_parts.ts";
import { loadTokenCounter } from "../o200k/mod.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import type { EmbeddingInput, RetrievalRequest } from "./types.ts";

/** Maximum number of tokens that a model adds to one input, such as delimiters and task instructions. */
const INPUT_OVERHEAD = 16;

/** Documents per search, as in Cohere's search unit (https://cohere.com/pricing). */
const SEARCH_DOCUMENTS = 100;
/** Tokens of a document with its query; a longer one counts as several documents (as above). */
const SEARCH_TOKENS = 500;

/** Characters that are counted before yielding to the event loop. They take a few milliseconds. */
const CHARS_PER_SLICE = 32_768;

/** The size of a request. */
export interface RetrievalSize {
  /** Expected tokens, for limits. */
  expected: number;
  /** Maximum number of tokens that can be billed. */
  maxTokens: number;
  /** Maximum number of searches that can be billed; 0 for embeddings. */
  maxSearches: number;
}

/** Returns the most tokens of an input. Byte-level tokenizers make at most one token per byte. */
function maxTokensOf(input: EmbeddingInput): number {
  return typeof input === "string" ? Buffer.byteLength(input) : input.length;
}

/** Measures a request without a tokenizer. */
export function measureRequest(request: RetrievalRequest, model: Model): RetrievalSize {
  const limit = inputLimit(model);
  let expected = 0;
  let maxTokens = 0;
  let chunks = 0;
  const query = request.kind === "rerank" ? maxTokensOf(request.query) : 0;
  for (const input of request.kind === "rerank" ? request.documents : request.inputs) {
    const tokens = query + maxTokensOf(input);
    expected += Math.min(limit, typeof input === "string" ? tokensOfBytes(tokens) : tokens);
    maxTokens += Math.min(limit, tokens + INPUT_OVERHEAD);
    if (request.kind === "rerank") chunks += Math.max(1, Math.ceil(tokens / SEARCH_TOKENS));
  }
  return { expected, maxTokens, maxSearches: Math.ceil(chunks / SEARCH_DOCUMENTS) };
}

/** Typical characters of a number in a vector, such as `-0.012345678,`. */
const NUMBER_CHARS = 12;
/** Bytes of a number in a vector in base64. */
const BASE64_BYTES = 16 / 3;

/** Returns the expected size of the answer, in bytes. */
export function expectedAnswerBytes(request: RetrievalRequest, { embedding }: Pick<Model, "embedding">): number {
  if (request.kind === "rerank") {
    return request.returnDocuments ? request.documents.reduce((sum, text) => sum + Buffer.byteLength(text), 0) : 0;
  }
  const numbers = request.inputs.length * (request.dimensions ?? embedding?.dimensions ?? 0);
  return Math.ceil(numbers * (request.base64 ? BASE64_BYTES : NUMBER_CHARS));
}

/** Returns a function that counts the o200k tokens of an input, and yields to the event loop between inputs. */
export async function pacedCounter(): Promise<(input: EmbeddingInput) => Promise<number>> {
  const counter = await loadTokenCounter();
  let chars = 0;
  return async (input) => {
    if (typeof input !== "string") return input.length;
    chars += input.length;
    if (chars > CHARS_PER_SLICE) {
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

/** Returns the number of searches of a request whose upstream reports none. */
export function countSearches({ documents }: { documents: readonly string[] }): number {
  return Math.ceil(documents.length / SEARCH_DOCUMENTS);
}
