/** The embedded models `embed` and `rerank`, and `fault` at their endpoints, as one upstream. */
import { GatewayError } from "../../errors.ts";
import { requestedFault } from "../../fault/mod.ts";
import { scanMembers, writeJson } from "../../json/mod.ts";
import { loadTokenCounter } from "../../o200k/mod.ts";
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
import { toBase64 } from "../../retrieval/vectors.ts";
import { runSlicedNow } from "../../scheduler.ts";
import { cosineOf, embedInput } from "./embed.ts";
import { playFaultOfWhole } from "./fault.ts";

/** Dimensions that documents are compared in. */
const RERANK_DIMENSIONS = 1_536;

/** Decimals of a score. */
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
  const most = model.embedding?.max_input_tokens ?? model.context_length;
  const vectors: string[] = [];
  for (const [index, input] of inputs.entries()) {
    await requireShort(input, { most, index });
    const vector = await runSlicedNow(embedInput(input, dimensions), signal);
    vectors.push(base64 ? toBase64(vector) : writeNumbers(vector));
  }
  return { vectors };
}

/** 32-bit floats, in the fewest digits that tell them apart: base64 of the same vector holds the same numbers. */
function writeNumbers(vector: Float64Array): string {
  return `[${Array.from(vector, (value) => value === 0 ? "0" : String(Number(Math.fround(value).toPrecision(9))))}]`;
}

/** @throws {GatewayError} `invalid` for an input with more tokens than the model takes */
async function requireShort(input: EmbeddingInput, { most, index }: { most: number; index: number }): Promise<void> {
  if (input.length <= most) return;
  const tokens = typeof input === "string" ? await (await loadTokenCounter()).countLong(input) : input.length;
  if (tokens <= most) return;
  throw new GatewayError("invalid", `Input ${index} has ${tokens} tokens; this model takes at most ${most}`, {
    param: "input",
    code: "context_length_exceeded",
  });
}

async function rerankAll({ request, signal }: RetrievalCall<RerankRequest>): Promise<Reranking> {
  const { query, documents, topN = documents.length, returnDocuments } = request;
  const asked = await runSlicedNow(embedInput(query, RERANK_DIMENSIONS), signal);
  const scored: { index: number; score: number }[] = [];
  for (const [index, document] of documents.entries()) {
    const vector = await runSlicedNow(embedInput(document, RERANK_DIMENSIONS), signal);
    scored.push({ index, score: Math.max(0, cosineOf(asked, vector)) });
  }
  const results = scored.sort((a, b) => b.score - a.score || a.index - b.index).slice(0, topN).map((
    { index, score },
  ) => ({
    index,
    relevance_score: Number(Math.min(1, score).toFixed(SCORE_DECIMALS)),
    ...(returnDocuments && { document: { text: documents[index] ?? "" } }),
  }));
  return { body: scanMembers(writeJson({ results })), value: { results } };
}
