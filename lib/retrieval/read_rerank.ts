/** Reads and checks requests to rerank documents. */
import { z } from "zod";
import { GatewayError } from "../errors.ts";
import { checkBody, fallbacksField, providerField } from "../protocols/fields.ts";
import type { JsonBody } from "../server/parse_body.ts";
import { checkSpellings } from "./check_spellings.ts";
import type { RerankRequest } from "./types.ts";

/**
 * Maximum number of documents of a request. Cohere advises against more than 1,000
 * (https://docs.cohere.com/reference/rerank).
 */
const MAX_DOCUMENTS = 2_048;

/**
 * Body of `POST /v1/rerank`: the members that Cohere (https://docs.cohere.com/reference/rerank), Jina
 * (https://api.jina.ai/redoc) and vLLM (https://docs.vllm.ai, "Re-rank API") share. Unknown members are allowed.
 */
export const rerankSchema = z.looseObject({
  model: z.string().min(1).max(256),
  query: z.string().min(1, { error: "Expected a text that is not empty" }),
  documents: z.array(z.union([z.string(), z.looseObject({ text: z.string() })])).min(1).max(MAX_DOCUMENTS),
  top_n: z.number().int().min(1).max(1_000_000).nullish().describe("Maximum number of results. Default: all documents"),
  return_documents: z.boolean().nullish(),
  models: fallbacksField.nullish().describe("Models to try if the first one fails"),
  provider: providerField.nullish(),
});

interface RerankBody {
  query: string;
  documents: (string | { text: string })[];
  top_n?: number | null;
  return_documents?: boolean | null;
}

/** Checks a request body. @throws {GatewayError} `invalid` */
export function checkRerankBody(body: JsonBody): void {
  checkSpellings(rerankSchema, body.value);
  const { documents } = body.value;
  // The number is checked first, because the schema would check every document before the number.
  if (Array.isArray(documents) && documents.length > MAX_DOCUMENTS) {
    throw new GatewayError("invalid", `Invalid value for documents: Expected at most ${MAX_DOCUMENTS}`, {
      param: "documents",
    });
  }
  checkBody(rerankSchema, body.value);
}

/** Reads a validated body. */
export function readRerank(body: JsonBody): RerankRequest {
  const { query, documents, top_n, return_documents } = body.value as unknown as RerankBody;
  return {
    kind: "rerank",
    body,
    query,
    documents: documents.map((document) => typeof document === "string" ? document : document.text),
    ...(typeof top_n === "number" && { topN: top_n }),
    returnDocuments: return_documents === true,
  };
}
