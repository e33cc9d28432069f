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
import { embeddingsSchema } from "../../retrieval/read_embeddings.ts";
import { rerankSchema } from "../../retrieval/read_rerank.ts";
import { pacedCounter } from "../../retrieval/size.ts";
import { toBase64 } from "../../retrieval/vectors.ts";
import { runSlicedNow } from "../../scheduler.ts";
import { characterEnd } from "../../text.ts";
import { dropUnsupportedMembers } from "../retrieval/unsupported_members.ts";
import { playFaultOfWhole } from "./fault.ts";

/** Dimensions of the vectors by which documents are compared. */
const RERANK_DIMENSIONS = 1_536;

/**
 * Maximum number of characters that are read of the query and of each document. Real rerank models also cut long
 * documents.
 */
const MAX_READ_CHARS = 32_768;

const SCORE_DECIMALS = 6;

/** Members without an effect are accepted if the schemas have them. */
const EMBEDDINGS_MEMBERS: ReadonlySet<string> = new Set(Object.keys(embeddingsSchema.shape));
const RERANK_MEMBERS: ReadonlySet<string> = new Set(Object.keys(rerankSchema.shape));

/** Makes embeddings. The configuration allows only `embed` and `fault`. */
export async function embed(call: RetrievalCall<EmbeddingsRequest>): Promise<Embeddings> {
  dropUnsupportedMembers(call, EMBEDDINGS_MEMBERS);
  const hasWrongUsage = await playFault(call, call.request.inputs.findLast((input) => typeof input === "string"));
  return { ...await embedAll(call), ...(hasWrongUsage && { tokens: -5 }) };
}

/** Ranks documents. The configuration allows only `rerank` and `fault`. */
export async function rerank(call: RetrievalCall<RerankRequest>): Promise<Reranking> {
  dropUnsupportedMembers(call, RERANK_MEMBERS);
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

/** Weights of features: words, words of up to three letters, pairs of words, n-grams of characters. */
const WORD_WEIGHT = 1;
const SHORT_WORD_WEIGHT = 0.4;
const PAIR_WEIGHT = 0.5;
const GRAM_WEIGHT = 0.35;

const GRAM_LENGTHS = [3, 4, 5];

/** Maximum number of characters of a word that are split into n-grams. */
const MAX_GRAM_CHARS = 64;

/** Matches words. In scripts without spaces, each character is a word. */
const WORDS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[[\p{L}\p{N}\p{M}]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]]+/gv;

/** Words that are processed in one step. */
const WORDS_PER_STEP = 512;

/**
 * Returns the vector of an input, of unit length, in steps for `runSliced`. Features are words, pairs of words and the
 * character n-grams of words; each is hashed to one dimension and a sign ("the hashing trick", Weinberger et al. 2009,
 * https://arxiv.org/abs/0902.2206). Texts that share features have similar vectors. It knows no synonyms.
 */
export function* embedInput(input: EmbeddingInput, dimensions: number): Generator<void, Float64Array> {
  const vector = new Float64Array(dimensions);
  const add = (feature: string, weight: number) => {
    const hash = hashOf(feature);
    const dimension = (hash >>> 1) % dimensions;
    vector[dimension] = (vector[dimension] ?? 0) + ((hash & 1) === 0 ? weight : -weight);
  };
  let count = 0;
  let previous = "";
  for (const word of typeof input === "string" ? wordsOf(input) : input.map((id) => `#${id}`)) {
    const letters = [...word];
    add(`w ${word}`, letters.length <= 3 ? SHORT_WORD_WEIGHT : WORD_WEIGHT);
    if (count > 0) add(`p ${previous} ${word}`, PAIR_WEIGHT);
    if (typeof input === "string" && letters.length > 1) addGrams(letters.slice(0, MAX_GRAM_CHARS), add);
    previous = word;
    if (++count % WORDS_PER_STEP === 0) yield;
  }
  return toUnitLength(vector);
}

/** Yields the words of a text, or its characters if it has no words. */
function* wordsOf(text: string): Generator<string> {
  const plain = text.normalize("NFKC").toLowerCase();
  let hasWords = false;
  for (const [word] of plain.matchAll(WORDS)) {
    hasWords = true;
    yield word;
  }
  if (!hasWords) yield* plain;
}

function addGrams(letters: readonly string[], add: (feature: string, weight: number) => void): void {
  const marked = ["<", ...letters, ">"];
  for (const length of GRAM_LENGTHS) {
    for (let from = 0; from + length <= marked.length; from++) {
      add(`g ${marked.slice(from, from + length).join("")}`, GRAM_WEIGHT);
    }
  }
}

/**
 * Returns the FNV-1a hash of the UTF-16 code units, mixed by MurmurHash3's finalizer. Both are in the public domain.
 */
function hashOf(feature: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < feature.length; at++) hash = Math.imul(hash ^ feature.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Scales a vector to unit length. If all features cancel each other out, it points along the first dimension. */
function toUnitLength(vector: Float64Array): Float64Array {
  const length = Math.hypot(...vector);
  if (length === 0) vector[0] = 1;
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** Returns the cosine of the angle between two vectors of unit length. */
export function cosineOf(first: Float64Array, second: Float64Array): number {
  return first.reduce((sum, value, at) => sum + value * (second[at] ?? 0), 0);
}
