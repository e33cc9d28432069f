/** The answers of the embedded models `embed` and `rerank`, and of `fault` for the same endpoints. */
import { GatewayError } from "../../errors.ts";
import { requestedFault } from "../../fault/mod.ts";
import { scanMembers, writeJson } from "../../json/mod.ts";
import type {
  EmbeddingInput,
  Embeddings,
  EmbeddingsRequest,
  Reranking,
  RerankRequest,
  RetrievalCall,
  RetrievalRequest,
} from "../../retrieval/types.ts";
import { pacedCounter } from "../../retrieval/size.ts";
import { toBase64 } from "../../retrieval/vectors.ts";
import { runSlicedNow } from "../../scheduler.ts";
import { characterEnd } from "../../text.ts";
import { cosineOf, embedInput } from "./embed.ts";
import { playFaultOfWhole } from "./fault.ts";

/** Dimensions of the vectors by which documents are compared. */
const RERANK_DIMENSIONS = 1_536;

/** Most characters that are read of the query and of each document. Real rerank models also cut long documents. */
const MAX_READ_CHARS = 32_768;

const SCORE_DECIMALS = 6;

/** Makes embeddings. The configuration allows only `embed` and `fault`. */
export async function embed(call: RetrievalCall<EmbeddingsRequest>): Promise<Embeddings> {
  const hasWrongUsage = await playFault(call, call.request.inputs.findLast((input) => typeof input === "string"));
  return { ...await embedAll(call), ...(hasWrongUsage && { tokens: -5 }) };
}

/** Ranks documents. The configuration allows only `rerank` and `fault`. */
export async function rerank(call: RetrievalCall<RerankRequest>): Promise<Reranking> {
  const hasWrongUsage = await playFault(call, call.request.query);
  return { ...await rerankAll(call), ...(hasWrongUsage && { tokens: -5 }) };
}

/** Plays the fault that a text or the model's id asks for. @returns true if the answer reports impossible usage */
async function playFault(call: RetrievalCall<RetrievalRequest>, text = ""): Promise<boolean> {
  call.signal.throwIfAborted();
  if (call.target.model !== "fault") return false;
  const messages = [{ role: "user" as const, blocks: [{ type: "text" as const, text }] }];
  const fault = requestedFault({ messages }, { model: call.model.id, scope: "embedded" });
  await playFaultOfWhole(fault, call);
  return fault?.name === "wrong-usage";
}

async function embedAll({ request, model, signal }: RetrievalCall<EmbeddingsRequest>): Promise<Embeddings> {
  const { inputs, base64 } = request;
  const dimensions = request.dimensions ?? model.embedding?.dimensions ?? RERANK_DIMENSIONS;
  const maxTokens = model.embedding?.max_input_tokens ?? model.context_length;
  const count = await pacedCounter();
  for (const [index, input] of inputs.entries()) {
    // A UTF-16 code unit has at most three bytes, and a token at least one byte, so short inputs need no count.
    const tokens = input.length * 3 <= maxTokens ? 0 : await count(input);
    if (tokens > maxTokens) throw tooLong({ tokens, maxTokens, index });
  }
  const write = base64 ? toBase64 : writeNumbers;
  return { vectors: await runSlicedNow(embedEach(inputs, dimensions, write), signal) };
}

/** Computes the vector of each input and maps it with `make`, in steps for `runSliced`. */
function* embedEach<T>(
  inputs: readonly EmbeddingInput[],
  dimensions: number,
  make: (vector: Float64Array) => T,
): Generator<void, T[]> {
  const results: T[] = [];
  for (const input of inputs) {
    results.push(make(yield* embedInput(input, dimensions)));
    yield;
  }
  return results;
}

/**
 * Writes a vector as JSON, with as many digits as 32-bit floats need, so that base64 of the vector has the same
 * numbers.
 */
function writeNumbers(vector: Float64Array): string {
  return `[${Array.from(vector, (value) => value === 0 ? "0" : String(Number(Math.fround(value).toPrecision(9))))}]`;
}

function tooLong({ tokens, maxTokens, index }: { tokens: number; maxTokens: number; index: number }): GatewayError {
  return new GatewayError("invalid", `Input ${index} has ${tokens} tokens; this model accepts at most ${maxTokens}`, {
    param: "input",
    code: "context_length_exceeded",
  });
}

async function rerankAll({ request, signal }: RetrievalCall<RerankRequest>): Promise<Reranking> {
  const { query, documents, topN = documents.length, returnDocuments } = request;
  const start = (text: string) => text.slice(0, characterEnd(text, MAX_READ_CHARS));
  const queryVector = await runSlicedNow(embedInput(start(query), RERANK_DIMENSIONS), signal);
  const score = (vector: Float64Array) => Math.max(0, cosineOf(queryVector, vector));
  const scores = await runSlicedNow(embedEach(documents.map(start), RERANK_DIMENSIONS, score), signal);
  const results = scores.map((score, index) => ({ index, score })).sort((a, b) =>
    b.score - a.score || a.index - b.index
  ).slice(0, topN).map((
    { index, score },
  ) => ({
    index,
    relevance_score: Number(Math.min(1, score).toFixed(SCORE_DECIMALS)),
    ...(returnDocuments && { document: { text: documents[index] ?? "" } }),
  }));
  return { body: scanMembers(writeJson({ results })), value: { results } };
}
