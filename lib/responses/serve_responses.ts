/** Serves responses requests, and resolves references to earlier responses first. */
import { readBearerKey } from "../access/authenticate.ts";
import { requireCaller } from "../access/permissions.ts";
import { responses } from "../protocols/responses/mod.ts";
import { serve } from "../request/serve.ts";
import { headOf, type JsonBody } from "../server/body.ts";
import type { RouteContext } from "../server/router.ts";
import { compactedResponse, type Compaction, needsSummary, summaryBody } from "./compact.ts";
import { recallBody } from "./recall_body.ts";
import { connectionMemory, keyMemory, type ResponseMemory } from "./response_memory.ts";
import { turnOf } from "./turn.ts";
import { warmUp } from "./warm_up.ts";

/**
 * `POST /v1/responses`. @param received called with the body, its references replaced
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
  const own: RouteContext = {
    ...context,
    readJson: async (scan) => {
      const withScan = { ...context, scan };
      const { body, keeper, compactionKeeper } = await recallBody(await context.readJson(scan), memory, withScan);
      own.keeper = keeper;
      received?.(body);
      if (!needsSummary(headOf(body), context.gateway)) return body;
      const { keep: _keep, written: _written, ...shown } = keeper;
      own.keeper = shown;
      compaction = { secret: memory.secret, keeper: compactionKeeper() };
      return await summaryBody(body, withScan);
    },
  };
  const response = await (turn?.isWarmUp === true ? warmUp(own) : serve(responses, request, own));
  return compaction === undefined ? response : await compactedResponse(response, compaction);
}

/** Returns the stored responses that the client of a request can refer to. */
export function memoryOf(request: Request, { gateway: { recall }, caller }: RouteContext): ResponseMemory {
  const turn = turnOf(request);
  const { keyId } = requireCaller(caller);
  const secret = readBearerKey(request.headers.get("authorization") ?? "") ?? "";
  const ofKey = keyMemory(recall, { keyId, secret });
  return turn === undefined ? ofKey : connectionMemory(turn.local, ofKey);
}
