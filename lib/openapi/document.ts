/** The API description, generated from the schemas that validate requests. */
import { z } from "zod";
import { editSchema } from "../images/read_edit.ts";
import { generationSchema } from "../images/read_generation.ts";
import type { JsonObject } from "../json/mod.ts";
import { chat } from "../protocols/chat/mod.ts";
import { countTokensSchema, messages } from "../protocols/messages/mod.ts";
import { responses } from "../protocols/responses/mod.ts";
import { embeddingsSchema } from "../retrieval/read_embeddings.ts";
import { rerankSchema } from "../retrieval/read_rerank.ts";
import { describePaths, jsonSchema, type Operation } from "./operation.ts";
import {
  anthropicErrorSchema,
  chatReplySchema,
  codexListSchema,
  compactionSchema,
  compatibleListSchema,
  compatibleModelSchema,
  countReplySchema,
  describedSchema,
  embeddingListSchema,
  healthSchema,
  imageResultSchema,
  inputTokensSchema,
  messageSchema,
  nativeListSchema,
  nativeModelSchema,
  openaiErrorSchema,
  ownUsageSchema,
  rerankingSchema,
  responseSchema,
} from "./schemas.ts";

const FORMATS = "An id whose slash is escaped (`vendor%2Fname`) returns that model.";

const PAGE = {
  limit: "Most models of the answer, 1 to 1000; absent: all",
  after_id: "Id of a model: those after it",
  before_id: "Id of a model: those right before it",
};

/** Statuses of operations that ask a model. */
const UPSTREAM = [502, 504];

/** Every operation for clients by `METHOD path`; a test holds this against the access table. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /healthz": { summary: "Is the process alive", reply: healthSchema },
  "GET /readyz": { summary: "Can the gateway answer requests", reply: healthSchema, others: [503] },
  "GET /openapi.json": { summary: "This description", reply: describedSchema, others: [304] },
  "GET /v1/usage": {
    summary: "What this API key spent, and what is left of its limits and budgets",
    query: {
      user: "An end user, instead of the header `x-sluice-user`: `user_budget` shows what this end user has left",
    },
    reply: ownUsageSchema,
  },
  "GET /v1/models": {
    summary: "List models",
    query: { client_version: "Version of Codex: the answer has the shape that Codex reads" },
    reply: z.union([compatibleListSchema, codexListSchema]),
    others: [304],
  },
  "GET /v1/models/[provider]": {
    summary: `List the models of one vendor. ${FORMATS}`,
    reply: z.union([compatibleListSchema, compatibleModelSchema]),
    others: [304, 404],
  },
  "GET /v1/models/[provider]/[model_id]": {
    summary: "Get one model",
    reply: compatibleModelSchema,
    others: [304, 404],
  },
  "POST /v1/chat/completions": {
    summary: "Create a chat completion",
    body: chat.schema,
    reply: chatReplySchema,
    streams: true,
    others: UPSTREAM,
  },
  "GET /v1/responses": {
    summary: "Open a WebSocket; each of its `response.create` messages has the body of `POST /v1/responses`",
    status: 101,
  },
  "POST /v1/responses": {
    summary: "Create a response",
    body: responses.schema,
    reply: responseSchema,
    streams: true,
    others: UPSTREAM,
  },
  "POST /v1/responses/compact": {
    summary: "Compact a conversation into its user messages and one item for everything else",
    body: responses.schema,
    reply: compactionSchema,
    others: UPSTREAM,
  },
  "POST /v1/responses/input_tokens": {
    summary: "Count the tokens of a responses request",
    body: responses.schema,
    reply: inputTokensSchema,
  },
  "POST /v1/images/generations": {
    summary: "Make images from a description",
    body: generationSchema,
    reply: imageResultSchema,
    streams: true,
    others: UPSTREAM,
  },
  "POST /v1/images/edits": {
    summary: "Edit images; `image` may be sent up to 16 times, also as `image[]`",
    body: editSchema,
    files: { image: "list", mask: "one" },
    reply: imageResultSchema,
    streams: true,
    others: UPSTREAM,
  },
  "POST /v1/embeddings": {
    summary: "Make vectors of texts",
    body: embeddingsSchema,
    reply: embeddingListSchema,
    others: UPSTREAM,
  },
  "POST /v1/rerank": {
    summary: "Order documents by their relevance to a query",
    body: rerankSchema,
    reply: rerankingSchema,
    others: UPSTREAM,
  },
  "GET /anthropic/api/hello": { summary: "Is anybody there", reply: healthSchema },
  "GET /anthropic/v1/models": {
    summary: "List language models, native format",
    query: PAGE,
    reply: nativeListSchema,
    others: [304],
  },
  "GET /anthropic/v1/models/[provider]": {
    summary: `List the language models of one vendor, native format. ${FORMATS}`,
    query: PAGE,
    reply: z.union([nativeListSchema, nativeModelSchema]),
    others: [304, 404],
  },
  "GET /anthropic/v1/models/[provider]/[model_id]": {
    summary: "Get one language model, native format",
    reply: nativeModelSchema,
    others: [304, 404],
  },
  "POST /anthropic/v1/messages": {
    summary: "Create a message",
    body: messages.schema,
    reply: messageSchema,
    streams: true,
    others: UPSTREAM,
  },
  "POST /anthropic/v1/messages/count_tokens": {
    summary: "Count the tokens of a message request",
    body: countTokensSchema,
    reply: countReplySchema,
  },
};

/** The same for requests that must name their quality. */
const WITH_QUALITY: Readonly<Record<string, Operation>> = Object.fromEntries(
  ([["POST /v1/images/generations", generationSchema], ["POST /v1/images/edits", editSchema]] as const).map((
    [name, { shape }],
  ) => {
    const operation = OPERATIONS[name];
    if (operation === undefined) throw new RangeError(`Cannot describe "${name}": it is no operation`);
    return [name, {
      ...operation,
      body: z.looseObject({ ...shape, quality: shape.quality.unwrap().unwrap().describe("Does not change the price") }),
    }];
  }),
);

/** The configuration that the description depends on. */
export interface DocumentOptions {
  /** True if image requests must name their quality. */
  needsQuality: boolean;
}

/**
 * The OpenAPI 3.1 document for clients. The admin side has its own, so that this one does not reveal it.
 */
export function openapiDocument({ needsQuality }: DocumentOptions = { needsQuality: true }): JsonObject {
  return {
    openapi: "3.1.0",
    info: {
      title: "Sluice",
      version: "1",
      description: "Gateway for language and image models: three text protocols, images, embeddings, one catalog.",
    },
    paths: describePaths(needsQuality ? { ...OPERATIONS, ...WITH_QUALITY } : OPERATIONS),
    components: {
      schemas: { OpenaiError: jsonSchema(openaiErrorSchema), AnthropicError: jsonSchema(anthropicErrorSchema) },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        api_key: { type: "apiKey", in: "header", name: "x-api-key" },
      },
    },
  };
}
