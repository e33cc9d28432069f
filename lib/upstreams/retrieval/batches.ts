/** Splits requests for embeddings that exceed the limits of a host. */
import { Buffer } from "node:buffer";
import type { EmbeddingInput } from "../../retrieval/types.ts";

/**
 * Most tokens of one request: "all embedding models enforce a maximum of 300,000 tokens summed across all inputs in a
 * single request" (https://platform.openai.com/docs/api-reference/embeddings/create). A text has at most one token for
 * each byte.
 */
const BATCH_TOKENS = 300_000;

/** Most characters of one answer. */
const ANSWER_CHARS = 48 * 1024 * 1024;
/** Most characters of a number in an answer, with its comma. */
const NUMBER_CHARS = 24;

const CONCURRENCY = 4;

/** Limits of a host. */
export interface BatchLimits {
  /** Most inputs of one request. */
  inputs: number;
  /** Length of the vectors. */
  dimensions: number;
}

/** Splits inputs into batches, in order. An input that is too large for a batch becomes a batch of its own. */
export function splitInputs(inputs: readonly EmbeddingInput[], limits: BatchLimits): EmbeddingInput[][] {
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
export async function sendBatches<B, A>(
  batches: readonly B[],
  signal: AbortSignal,
  send: (batch: B, signal: AbortSignal) => Promise<A>,
): Promise<A[]> {
  const [only] = batches;
  if (only !== undefined && batches.length === 1) return [await send(only, signal)];
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
