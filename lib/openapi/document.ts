/** Generates the API description for clients from the schemas that validate requests. */
import { z } from "zod";
import { editSchema } from "../images/read_edit.ts";
import { generationSchema } from "../images/read_generation.ts";
import type { JsonObject } from "../json/mod.ts";
import { chat } from "../protocols/chat/mod.ts";
import { gemini } from "../protocols/gemini/mod.ts";
import { countTokensSchema, messages } from "../protocols/messages/mod.ts";
import { responses } from "../protocols/responses/mod.ts";
import { embeddingsSchema } from "../retrieval/read_embeddings.ts";
import { rerankSchema } from "../retrieval/read_rerank.ts";
import { describePaths, jsonSchema, type Operation } from "./operation.ts";
import * as answers from "./schemas.ts";
import { jsonWithEtag } from "../server/json_response.ts";
import type { RouteContext } from "../server/router.ts";

/** Note on routes whose parameter may be a vendor or a model. */
const ESCAPED_ID_NOTE = "An id whose slash is escaped (`vendor%2Fname`) returns that model.";

const PAGE_PARAMETERS = {
  limit: "Maximum number of models in the answer, 1 to 1000. Default: all",
  after_id: "Id of a model: list those after it",
  before_id: "Id of a model: list those immediately before it",
};

/** Returns an operation that sends a request to a model, which may fail with 502 or 504. */
function modelOperation(summary: string, body: z.ZodType, reply: z.ZodType, more: Partial<Operation> = {}): Operation {
  return { summary, body, reply, others: [502, 504], ...more };
}

/** The query parameter with the key, in Google's protocol. */
const GOOGLE_KEY = { key: "The API key, if no header has it" };

/** The operation for all methods of a model in Gemini's protocol. */
const GEMINI: Operation = {
  summary: "Generate content: the id ends with `:generateContent`, `:streamGenerateContent` or `:countTokens`",
  query: { ...GOOGLE_KEY, alt: "`sse` streams server-sent events. Default: a stream is a JSON array" },
  body: gemini.schema.omit({ model: true, stream: true }),
  reply: z.union([answers.contentReplySchema, answers.contentArraySchema, answers.tokenCountSchema]),
  streams: true,
  others: [502, 504],
};

/** All operations for clients by method and path. A test compares them with the access table. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /healthz": { summary: "Check that the process is alive", reply: answers.healthSchema },
  "GET /readyz": { summary: "Check that the gateway can answer requests", reply: answers.healthSchema, others: [503] },
  "GET /openapi.json": { summary: "This description", reply: answers.describedSchema, others: [304] },
  "GET /v1/usage": {
    summary: "Get the spending of this API key, and what remains of its limits and budgets",
    query: {
      user: "An end user, instead of the header `x-sluice-user`: `user_budget` shows what this end user has left",
    },
    reply: answers.ownUsageSchema,
  },
  "GET /v1/models": {
    summary: "List models",
    query: { client_version: "Version of Codex: the answer has the shape that Codex reads" },
    reply: z.union([answers.compatibleListSchema, answers.codexListSchema]),
    others: [304],
  },
  "GET /v1/models/[provider]": {
    summary: `List the models of one vendor. ${ESCAPED_ID_NOTE}`,
    reply: z.union([answers.compatibleListSchema, answers.compatibleModelSchema]),
    others: [304, 404],
  },
  "GET /v1/models/[provider]/[model_id]": {
    summary: "Get one model",
    reply: answers.compatibleModelSchema,
    others: [304, 404],
  },
  "POST /v1/chat/completions": modelOperation("Create a chat completion", chat.schema, answers.chatReplySchema, {
    streams: true,
  }),
  "GET /v1/responses": {
    summary: "Open a WebSocket. Each `response.create` message has the body of `POST /v1/responses`",
    status: 101,
  },
  "POST /v1/responses": modelOperation("Create a response", responses.schema, answers.responseSchema, {
    streams: true,
  }),
  "POST /v1/responses/compact": modelOperation(
    "Compact a conversation into its user messages and one item for everything else",
    responses.schema,
    answers.compactionSchema,
  ),
  "POST /v1/responses/input_tokens": {
    summary: "Count the tokens of a responses request",
    body: responses.schema,
    reply: answers.inputTokensSchema,
  },
  "POST /v1/images/generations": modelOperation(
    "Make images from a description",
    generationSchema,
    answers.imageResultSchema,
    { streams: true },
  ),
  "POST /v1/images/edits": modelOperation(
    "Edit images; `image` may be sent up to 16 times, also as `image[]`",
    editSchema,
    answers.imageResultSchema,
    { files: { image: "list", mask: "one" }, streams: true },
  ),
  "POST /v1/embeddings": modelOperation("Make vectors of texts", embeddingsSchema, answers.embeddingListSchema),
  "POST /v1/rerank": modelOperation(
    "Order documents by their relevance to a query",
    rerankSchema,
    answers.rerankingSchema,
  ),
  "GET /anthropic/api/hello": {
    summary: "Check that the gateway answers (called by Claude Code)",
    reply: answers.healthSchema,
  },
  "GET /anthropic/v1/models": {
    summary: "List language models, native format",
    query: PAGE_PARAMETERS,
    reply: answers.nativeListSchema,
    others: [304],
  },
  "GET /anthropic/v1/models/[provider]": {
    summary: `List the language models of one vendor, native format. ${ESCAPED_ID_NOTE}`,
    query: PAGE_PARAMETERS,
    reply: z.union([answers.nativeListSchema, answers.nativeModelSchema]),
    others: [304, 404],
  },
  "GET /anthropic/v1/models/[provider]/[model_id]": {
    summary: "Get one language model, native format",
    reply: answers.nativeModelSchema,
    others: [304, 404],
  },
  "POST /anthropic/v1/messages": modelOperation("Create a message", messages.schema, answers.messageSchema, {
    streams: true,
  }),
  "POST /anthropic/v1/messages/count_tokens": {
    summary: "Count the tokens of a message request",
    body: countTokensSchema,
    reply: answers.countReplySchema,
  },
  "GET /v1beta/models": {
    summary: "List language models, Gemini's format",
    query: {
      ...GOOGLE_KEY,
      pageSize: "Maximum number of models in the answer. Default: all",
      pageToken: "`nextPageToken` of the page before",
    },
    reply: answers.geminiListSchema,
    others: [304],
  },
  "GET /v1beta/models/[provider]": {
    summary: "Get one language model by an id without a slash or with an escaped slash, Gemini's format",
    query: GOOGLE_KEY,
    reply: answers.geminiModelSchema,
    others: [304, 404],
  },
  "GET /v1beta/models/[provider]/[model_id]": {
    summary: "Get one language model, Gemini's format",
    query: GOOGLE_KEY,
    reply: answers.geminiModelSchema,
    others: [304, 404],
  },
  "POST /v1beta/models/[provider]": GEMINI,
  "POST /v1beta/models/[provider]/[model_id]": GEMINI,
};

/** The image operations if requests must name their quality. */
const OPERATIONS_WITH_QUALITY: Readonly<Record<string, Operation>> = Object.fromEntries(
  ([["POST /v1/images/generations", generationSchema], ["POST /v1/images/edits", editSchema]] as const).map((
    [name, { shape }],
  ) => {
    const operation = OPERATIONS[name];
    if (operation === undefined) throw new RangeError(`Cannot describe "${name}": it is no operation`);
    return [name, {
      ...operation,
      body: z.looseObject({ ...shape, quality: shape.quality.unwrap().unwrap().describe("Does not affect the price") }),
    }];
  }),
);

/**
 * Builds the OpenAPI 3.1 document for clients. It does not reveal the admin API, which has a document of its own.
 * @param needsQuality whether image requests must name their quality
 */
export function openapiDocument(needsQuality: boolean): JsonObject {
  return {
    openapi: "3.1.0",
    info: {
      title: "Sluice",
      version: "1",
      description: "Gateway for language and image models: four text protocols, images, embeddings and reranking.",
    },
    paths: describePaths(needsQuality ? { ...OPERATIONS, ...OPERATIONS_WITH_QUALITY } : OPERATIONS),
    components: {
      schemas: {
        OpenaiError: jsonSchema(answers.openaiErrorSchema),
        AnthropicError: jsonSchema(answers.anthropicErrorSchema),
        GoogleError: jsonSchema(answers.googleErrorSchema),
      },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        api_key: { type: "apiKey", in: "header", name: "x-api-key" },
        google_key: { type: "apiKey", in: "header", name: "x-goog-api-key" },
        google_key_in_query: { type: "apiKey", in: "query", name: "key" },
      },
    },
  };
}

/** Documents that were built, by whether image requests must name their quality. */
const documents = new Map<boolean, JsonObject>();

/** Returns the description that fits the configuration. It is built at the first request for it. */
export function serveOpenapi(request: Request, { gateway: { config } }: RouteContext): Promise<Response> {
  const needsQuality = config.images.default_quality === undefined;
  let document = documents.get(needsQuality);
  if (document === undefined) documents.set(needsQuality, document = openapiDocument(needsQuality));
  return jsonWithEtag(request, document);
}
