/** Serves requests for embeddings and reranking. The steps have the numbers of docs/explanation/architecture.md. */
import type { Model } from "../catalog/model.ts";
import { attributeUser, runMetered } from "../request/request_meter.ts";
import type { JsonBody } from "../server/parse_body.ts";
import type { RouteContext } from "../server/router.ts";
import { admitRetrieval } from "./admit.ts";
import { findRetrievalCandidates } from "./candidates.ts";
import { checkEmbeddingsBody, readEmbeddings } from "./read_embeddings.ts";
import { checkRerankBody, readRerank } from "./read_rerank.ts";
import { type RetrievalAnswer, sendRetrieval } from "./send.ts";
import { type SettledRetrieval, settleRetrieval } from "./settle.ts";
import { expectedAnswerBytes } from "./size.ts";
import type {
  Embeddings,
  EmbeddingsRequest,
  Reranking,
  RerankRequest,
  RetrievalCall,
  RetrievalRequest,
  RetrievalUpstream,
} from "./types.ts";
import { wholeAnswer } from "../server/watched_stream.ts";
import { isObject, spliceMembers } from "../json/mod.ts";

/** The differences between the two endpoints. */
interface RetrievalEndpoint<R extends RetrievalRequest, A> {
  name: R["kind"];
  /** The kind of models that answer. */
  kind: "embedding" | "rerank";
  /** Validates a body. @throws {GatewayError} `invalid` */
  check: (body: JsonBody) => void;
  /** Reads a validated body for a model. @throws {GatewayError} `invalid` */
  read: (body: JsonBody, model: Model) => R;
  call: (upstream: RetrievalUpstream, call: RetrievalCall<R>) => Promise<A>;
  write: (
    answer: RetrievalAnswer<R, A>,
    settled: SettledRetrieval,
    context: RouteContext,
  ) => Response | Promise<Response>;
}

/** Answers `POST /v1/embeddings`. */
export function createEmbeddings(client: Request, context: RouteContext): Promise<Response> {
  return serveRetrieval<EmbeddingsRequest, Embeddings>(client, context, {
    name: "embeddings",
    kind: "embedding",
    check: checkEmbeddingsBody,
    read: readEmbeddings,
    call: (upstream, call) => upstream.embed(call),
    write: writeEmbeddings,
  });
}

/** Answers `POST /v1/rerank`. */
export function rerankDocuments(client: Request, context: RouteContext): Promise<Response> {
  return serveRetrieval<RerankRequest, Reranking>(client, context, {
    name: "rerank",
    kind: "rerank",
    check: checkRerankBody,
    read: readRerank,
    call: (upstream, call) => upstream.rerank(call),
    write: writeReranking,
  });
}

function serveRetrieval<R extends RetrievalRequest, A extends { tokens?: number; searches?: number }>(
  client: Request,
  context: RouteContext,
  { name, kind, check, read, call, write }: RetrievalEndpoint<R, A>,
): Promise<Response> {
  // 1. The app has matched the route and authenticated the key. From here on the request is metered.
  return runMetered(client, { context, endpoint: name }, async (metered) => {
    const { meter } = metered;
    // 2, 3. Read the body and check it.
    const body = await context.readJson();
    attributeUser(meter.entry, body.value);
    check(body);
    // 4, 5. Find the models, and check the request against each of them.
    const { candidates, preferences } = findRetrievalCandidates(body, { context, meter }, { kind, read });
    // 6. Reserve memory for the answer, and limits and budget for the most that the request can cost.
    const [first] = candidates;
    if (first !== undefined) context.body.reserveAnswer(expectedAnswerBytes(first.request, first.model));
    const admitted = await admitRetrieval(candidates, { meter, context });
    // 7, 8. Call one target after another until one answers.
    const answer = await sendRetrieval({ client, context, metered, admitted, preferences, call });
    // 11. Settle: the ledger entry is durable before the first byte goes out.
    const settled = await settleRetrieval(answer, meter);
    // 12. Write the answer.
    context.answerHeaders.push(["x-sluice-cost", settled.cost]);
    return await write(answer, settled, context);
  });
}

/** Writes an answer with the vectors unchanged. A large answer is written in chunks. */
function writeEmbeddings(
  { answer: { vectors }, candidate: { model } }: RetrievalAnswer<EmbeddingsRequest, Embeddings>,
  { tokens }: SettledRetrieval,
  { gateway, timers }: RouteContext,
): Response {
  const head = '{"object":"list","data":[';
  const items = vectors.map((vector, index) =>
    `${index > 0 ? "," : ""}{"object":"embedding","index":${index},"embedding":${vector}}`
  );
  const usage = JSON.stringify({ prompt_tokens: tokens, total_tokens: tokens });
  const pieces = [head, ...items, `],"model":${JSON.stringify(model.id)},"usage":${usage}}`];
  return wholeAnswer(pieces, { unreadMs: gateway.config.resource_limits.answer_unread_ms, timers });
}

/**
 * Writes the upstream's answer with the public id of the model. Cohere's clients need `meta`, and Jina's clients need
 * `usage`, so a missing one is created from the billed usage.
 */
function writeReranking(
  { answer: { body, value }, candidate: { model } }: RetrievalAnswer<RerankRequest, Reranking>,
  { tokens, searches }: SettledRetrieval,
  { gateway, timers }: RouteContext,
): Response {
  const text = spliceMembers(body, {
    model: JSON.stringify(model.id),
    ...(!isObject(value.usage) && { usage: JSON.stringify({ prompt_tokens: tokens, total_tokens: tokens }) }),
    ...(!isObject(value.meta) && { meta: JSON.stringify({ billed_units: { search_units: searches } }) }),
  });
  return wholeAnswer([text], { unreadMs: gateway.config.resource_limits.answer_unread_ms, timers });
}
