/** Requests for embeddings and reranking through a whole gateway. */
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import type { AskOptions, TestGateway } from "../../support/gateway.ts";
import { json, type ScriptedAnswer } from "../../upstream/mod.ts";

/** A row of an embedding model with vectors of two numbers. */
export function embeddingRow(id: string, upstreams: readonly string[], more: JsonObject = {}): JsonObject {
  return {
    id,
    created: 1,
    context_length: 8_192,
    architecture: { output_modalities: ["embeddings"] },
    pricing: { prompt: "0.00000002", completion: "0" },
    embedding: { dimensions: 2 },
    targets: upstreams.map((upstream, priority) => ({ upstream, model: "vectors-1", priority })),
    ...more,
  };
}

/** A row of a rerank model. */
export function rerankRow(id: string, upstreams: readonly string[], more: JsonObject = {}): JsonObject {
  return {
    ...embeddingRow(id, upstreams),
    embedding: undefined,
    architecture: { output_modalities: ["rerank"] },
    ...more,
  };
}

/** Sends JSON to a path. */
export function post(
  { url, key }: TestGateway,
  path: string,
  body: JsonObject,
  more: AskOptions = {},
): Promise<Response> {
  return fetch(url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${(more.key ?? key).key}`,
      "content-type": "application/json",
      ...more.headers,
    },
    body: JSON.stringify(body),
    ...(more.signal !== undefined && { signal: more.signal }),
  });
}

/** The status of an answer, whose body is discarded. */
export async function statusOf(pending: Promise<Response>): Promise<number> {
  const response = await pending;
  await response.body?.cancel();
  return response.status;
}

/** An answer with vectors, each as its JSON text. */
export function vectors(
  texts: readonly string[],
  usage: JsonObject | null = { prompt_tokens: 7, total_tokens: 7 },
): ScriptedAnswer {
  const data = texts.map((text, index) => `{"object":"embedding","index":${index},"embedding":${text}}`);
  const body = `{"object":"list","data":[${data}],"model":"vectors-1","usage":${JSON.stringify(usage)}}`;
  return { headers: { "content-type": "application/json" }, body };
}

/** Two 32-bit floats as base64. */
export function base64Of(...numbers: number[]): string {
  return `"${btoa(String.fromCharCode(...new Uint8Array(new Float32Array(numbers).buffer)))}"`;
}

/** An error in OpenAI's shape. */
export function failure(status: number, message = "no"): ScriptedAnswer {
  return json({ error: { message, type: "server_error", code: null, param: null } }, { status });
}

/** All entries of the ledger. */
export function entriesOf({ store }: TestGateway): Promise<KeptEntry[]> {
  return store.ledger.entries({ after: 0, limit: 1_000 });
}
