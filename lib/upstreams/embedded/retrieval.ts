/** The embedded models `embed` and `rerank`, and `fault` at their endpoints, as one upstream. */
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
  RetrievalUpstream,
} from "../../retrieval/types.ts";
import { pacedCounter } from "../../retrieval/size.ts";
import { toBase64 } from "../../retrieval/vectors.ts";
import { runSlicedNow } from "../../scheduler.ts";
import { characterEnd } from "../../text.ts";
import { cosineOf, embedInput } from "./embed.ts";
import { playFaultOfWhole } from "./fault.ts";

/** Dimensions that documents are compared in. */
const RERANK_DIMENSIONS = 1_536;

/** Characters of the query and of each document that are read; rerank models cut long documents, too. */
const READ_CHARS = 32_768;

const SCORE_DECIMALS = 6;

/** Creates the upstream. The configuration allows only `embed`, `rerank` and `fault`. */
export function createEmbeddedRetrieval(): RetrievalUpstream {
  return {
    async embed(call) {
      const isWrong = await rehearse(call, call.request.inputs.findLast((input) => typeof input === "string"));
      return { ...await embedAll(call), ...(isWrong && { tokens: -5 }) };
    },
    async rerank(call) {
      const isWrong = await rehearse(call, call.request.query);
      return { ...await rerankAll(call), ...(isWrong && { tokens: -5 }) };
    },
    close() {},
  };
}

/** Plays the fault that a text or the model's id asks for. @returns true if the answer reports impossible usage */
async function rehearse(call: RetrievalCall<RetrievalRequest>, text = ""): Promise<boolean> {
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
  const limit = model.embedding?.max_input_tokens ?? model.context_length;
  const count = await pacedCounter();
  for (const [index, input] of inputs.entries()) {
    // A code unit of UTF-16 is at most three bytes, and a token at least one.
    const tokens = input.length * 3 <= limit ? 0 : await count(input);
    if (tokens > limit) throw tooLong({ tokens, limit, index });
  }
  const write = base64 ? toBase64 : writeNumbers;
  return { vectors: await runSlicedNow(embedEach(inputs, dimensions, write), signal) };
}

/** Maps the vector of each input, in steps for `runSliced`. */
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

/** 32-bit floats, in the fewest digits that tell them apart: base64 of the same vector holds the same numbers. */
function writeNumbers(vector: Float64Array): string {
  return `[${Array.from(vector, (value) => value === 0 ? "0" : String(Number(Math.fround(value).toPrecision(9))))}]`;
}

function tooLong({ tokens, limit, index }: { tokens: number; limit: number; index: number }): GatewayError {
  return new GatewayError("invalid", `Input ${index} has ${tokens} tokens; this model accepts at most ${limit}`, {
    param: "input",
    code: "context_length_exceeded",
  });
}

async function rerankAll({ request, signal }: RetrievalCall<RerankRequest>): Promise<Reranking> {
  const { query, documents, topN = documents.length, returnDocuments } = request;
  const start = (text: string) => text.slice(0, characterEnd(text, READ_CHARS));
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
