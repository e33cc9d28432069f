/** The handlers of the endpoints that the playground sends to. */
import { callModel } from "../gemini/call_model.ts";
import { generateImages } from "../images/serve.ts";
import { chat } from "../protocols/chat/mod.ts";
import { messages } from "../protocols/messages/mod.ts";
import { serve } from "../request/serve.ts";
import { serveResponses } from "../responses/serve_responses.ts";
import { createEmbeddings, rerankDocuments } from "../retrieval/serve.ts";
import type { Handler } from "../server/router.ts";
import type { PlaygroundEndpoint } from "./playground_request.ts";

/** Handlers of clients' requests by endpoint. */
export const HANDLERS: Readonly<Record<PlaygroundEndpoint, Handler>> = {
  chat: (request, context) => serve(chat, request, context),
  responses: serveResponses,
  messages: (request, context) => serve(messages, request, context),
  gemini: callModel,
  images: generateImages,
  embeddings: createEmbeddings,
  rerank: rerankDocuments,
};
