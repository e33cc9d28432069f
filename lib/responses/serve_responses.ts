/** Serves requests of the responses protocol: resolves references to earlier responses, and compacts conversations. */
import { readBearerKey } from "../access/authenticate.ts";
import { requireCaller } from "../access/permissions.ts";
import { responses } from "../protocols/responses/mod.ts";
import { serve } from "../request/serve.ts";
import { headOf, type JsonBody } from "../server/parse_body.ts";
import type { RouteContext } from "../server/router.ts";
import { compactedResponse, type Compaction, needsSummary, summaryBody } from "./compact.ts";
import { recallBody } from "./recall_body.ts";
import { connectionMemory, keyMemory, type ResponseMemory } from "./response_memory.ts";
import { turnOf } from "./turn.ts";
import { checkBody } from "../protocols/fields.ts";
import { findModel } from "../request/candidates.ts";
import { formatFrames } from "../server/sse.ts";
import { streamHeaders } from "../server/json_response.ts";

/**
 * Answers `POST /v1/responses`.
 * @param received called with the body, in which references are resolved
 * @throws {GatewayError} as `serve`, and `invalid` for unknown references
 */
export async function serveResponses(
  request: Request,
  context: RouteContext,
  received?: (body: JsonBody) => void,
): Promise<Response> {
  const turn = turnOf(request);
  const memory = memoryOf(request, context);
  let compaction: Compaction | undefined;
  const recallContext: RouteContext = {
    ...context,
    readJson: async (scan) => {
      const bodyContext = { ...context, scan };
      const { body, keeper, compactionKeeper } = await recallBody(await context.readJson(scan), memory, bodyContext);
      recallContext.keeper = keeper;
      received?.(body);
      if (!needsSummary(headOf(body), context.gateway)) return body;
      // The summary itself is not stored, but the answer shows the same facts about storing.
      const { keep: _keep, written: _written, ...withoutStoring } = keeper;
      recallContext.keeper = withoutStoring;
      compaction = { secret: memory.secret, keeper: compactionKeeper() };
      return await summaryBody(body, bodyContext);
    },
  };
  const response = await (turn?.isWarmUp === true ? warmUp(recallContext) : serve(responses, request, recallContext));
  return compaction === undefined ? response : await compactedResponse(response, compaction);
}

/** Returns the stored responses that the client of a request can refer to. */
export function memoryOf(request: Request, { gateway: { recall }, caller }: RouteContext): ResponseMemory {
  const turn = turnOf(request);
  const { keyId } = requireCaller(caller);
  const secret = readBearerKey(request.headers.get("authorization") ?? "") ?? "";
  const shared = keyMemory(recall, { keyId, secret });
  return turn === undefined ? shared : connectionMemory(turn.local, shared);
}

/** Placeholder for an empty input, which is allowed only in warm-ups. */
const NO_INPUT = "-";

/**
 * Answers a warm-up, in which a client sends the beginning of its next request, with an empty response, and stores the
 * input. No model is called, and it costs nothing.
 * @throws {GatewayError} as `serve` before anything is reserved
 */
async function warmUp(context: RouteContext): Promise<Response> {
  const { value } = await context.readJson();
  const { gateway, keeper, requestId } = context;
  const { input = [] } = value;
  const request = Array.isArray(input) && input.length === 0 ? { ...value, input: NO_INPUT } : value;
  checkBody(responses.schema, request);
  const prompt = responses.readPrompt(request);
  const model = findModel(prompt.model, context);
  const createdAt = Math.floor(gateway.now() / 1000);
  const writer = responses.writer({
    requestId,
    createdAt,
    model: model.id,
    request,
    prompt,
    ...(keeper !== undefined && { keeper }),
  });
  const frames = [
    ...writer.push({ type: "start" }),
    ...writer.push({ type: "finish", reason: "end", usage: { prompt: 0, completion: 0 } }),
    ...writer.end(),
  ];
  await keeper?.written?.();
  return new Response(formatFrames(frames), { headers: streamHeaders({}) });
}
