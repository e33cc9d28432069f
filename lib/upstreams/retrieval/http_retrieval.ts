/** An upstream for embeddings and reranking that is reached over the network. */
import type {
  EmbeddingInput,
  Embeddings,
  EmbeddingsRequest,
  RetrievalCall,
  RetrievalRequest,
  RetrievalUpstream,
} from "../../retrieval/types.ts";
import { contentFilter } from "../../redact.ts";
import type { HttpUpstreamOptions } from "../http_upstream.ts";
import { limitsFor } from "../prepare_attempt.ts";
import { ANSWER_BYTES, readFailure, readWhole, requestIdOf } from "../answers.ts";
import { UPSTREAM_CODECS } from "../protocols.ts";
import type { Incoming, ResendableBody } from "../transport.ts";
import { retrievalAddressOf } from "../vendors.ts";
import { readGeminiBatch, writeGeminiBatch } from "./gemini.ts";
import { readEmbeddingsAnswer, readRerankAnswer, writeEmbeddingsBody, writeRerankBody } from "./openai.ts";
import type { WantedVectors } from "./read_vectors.ts";
import { Buffer } from "node:buffer";

/** Creates the upstream. */
export function createHttpRetrieval(
  options: Pick<HttpUpstreamOptions, "vendor" | "baseUrl" | "key" | "limits" | "transport">,
): RetrievalUpstream {
  const { vendor, baseUrl, key, transport } = options;
  const isGemini = vendor.protocols[0] === "gemini";
  const auth = key === undefined ? {} : vendor.auth(key.reveal());
  const filter = contentFilter(key);

  /**
   * Sends a request and reads its answer.
   * @throws {GatewayError} the upstream's error, or the error of the connection
   */
  async function post<T>(
    call: RetrievalCall<RetrievalRequest>,
    body: ResendableBody,
    read: (incoming: Incoming) => Promise<T>,
  ): Promise<T> {
    const limits = limitsFor(call, options.limits, "text");
    const incoming = await transport.send({
      url: retrievalAddressOf(baseUrl, {
        kind: call.request.kind,
        geminiModel: isGemini ? call.target.model : undefined,
      }),
      headers: { "content-type": "application/json", accept: "application/json", ...auth },
      body,
      signal: call.signal,
      // The first byte arrives when the whole answer is complete.
      limits: { ...limits, firstByteMs: limits.totalMs },
    });
    if (incoming.status !== 200) throw await readFailure(incoming, UPSTREAM_CODECS[isGemini ? "gemini" : "chat"]);
    const requestId = requestIdOf(incoming);
    if (requestId !== undefined) call.identify(requestId);
    try {
      return await read(incoming);
    } catch (error) {
      incoming.cancel();
      throw error;
    }
  }

  async function readText(incoming: Incoming): Promise<string> {
    const text = await incoming.text(ANSWER_BYTES);
    return filter === undefined ? text : filter(text);
  }

  async function embed(call: RetrievalCall<EmbeddingsRequest>): Promise<Embeddings> {
    const { request, model, target } = call;
    const dimensions = request.dimensions ?? model.embedding?.dimensions ?? 0;
    const batches = splitInputs(request.inputs, { inputs: target.batch ?? vendor.embeddings ?? 1, dimensions });
    const answers = await sendBatches(batches, call.signal, async (batch, signal) => {
      const expected: WantedVectors = { count: batch.length, dimensions, base64: request.base64 };
      const part = { ...call, signal };
      const body = isGemini
        ? writeGeminiBatch(part, batch)
        : writeEmbeddingsBody(part, batches.length === 1 ? undefined : batch);
      const readBatch = isGemini ? readGeminiBatch : readEmbeddingsAnswer;
      return await post(part, body, async (incoming) => await readBatch(await readText(incoming), expected));
    });
    const vectors = answers.flatMap(({ vectors }) => vectors);
    // If one batch reports no tokens, the sum would be wrong, so none are reported.
    const tokens = answers.reduce((sum, { tokens = NaN }) => sum + tokens, 0);
    return { vectors, ...(!Number.isNaN(tokens) && { tokens }) };
  }

  return {
    embed,
    rerank: (call) =>
      post(
        call,
        writeRerankBody(call),
        async (incoming) => readRerankAnswer(await readWhole(incoming, filter), call.request),
      ),
    close: () => transport.close(),
  };
}

/**
 * Maximum number of tokens of one request: "all embedding models enforce a maximum of 300,000 tokens summed across all
 * inputs in a single request" (https://platform.openai.com/docs/api-reference/embeddings/create). A text has at most
 * one token for each byte.
 */
const BATCH_TOKENS = 300_000;

/** Maximum number of characters of one answer. */
const ANSWER_CHARS = 48 * 1024 * 1024;
/** Maximum number of characters of a number in an answer, with its comma. */
const NUMBER_CHARS = 24;

const CONCURRENCY = 4;

interface BatchLimits {
  /** Maximum number of inputs of one request. */
  inputs: number;
  dimensions: number;
}

/** Splits inputs into batches, in order. An input that is too large for a batch becomes a batch of its own. */
function splitInputs(inputs: readonly EmbeddingInput[], limits: BatchLimits): EmbeddingInput[][] {
  const maxInputs = Math.max(1, Math.min(limits.inputs, Math.floor(ANSWER_CHARS / (limits.dimensions * NUMBER_CHARS))));
  const batches: EmbeddingInput[][] = [];
  let batch: EmbeddingInput[] = [];
  let tokens = 0;
  for (const input of inputs) {
    const size = typeof input === "string" ? Buffer.byteLength(input) : input.length;
    if (batch.length > 0 && (batch.length >= maxInputs || tokens + size > BATCH_TOKENS)) {
      batches.push(batch);
      batch = [];
      tokens = 0;
    }
    batch.push(input);
    tokens += size;
  }
  batches.push(batch);
  return batches;
}

/**
 * Sends the batches, several at a time. The first failure aborts the others.
 * @param signal aborts all batches
 * @returns the answers, in the order of the batches
 * @throws the first failure
 */
async function sendBatches<B, A>(
  batches: readonly B[],
  signal: AbortSignal,
  send: (batch: B, signal: AbortSignal) => Promise<A>,
): Promise<A[]> {
  const failed = new AbortController();
  const aborted = AbortSignal.any([signal, failed.signal]);
  const answers: A[] = [];
  const queue = batches.entries();
  const sendNext = async () => {
    for (const [index, batch] of queue) {
      aborted.throwIfAborted();
      answers[index] = await send(batch, aborted);
    }
  };
  try {
    await Promise.all(Array.from({ length: CONCURRENCY }, sendNext));
  } catch (error) {
    failed.abort();
    throw error;
  }
  return answers;
}
