/** Serves responses requests: those that refer to earlier responses get the whole conversation as their input. */
import { readBearerKey } from "../access/authenticate.ts";
import { requireCaller } from "../access/caller.ts";
import { responses } from "../protocols/responses/mod.ts";
import { serve } from "../request/serve.ts";
import type { RouteContext } from "../server/router.ts";
import { recallBody } from "./recall_body.ts";
import { connectionMemory, keyMemory } from "./response_memory.ts";
import { turnOf } from "./turn.ts";
import { warmUp } from "./warm_up.ts";

/** `POST /v1/responses`. @throws {GatewayError} as `serve`, and `invalid` for references to what is not kept */
export function serveResponses(request: Request, context: RouteContext): Promise<Response> {
  const turn = turnOf(request);
  const ofKey = keyMemory(context.gateway.recall, {
    keyId: requireCaller(context.caller).keyId,
    secret: readBearerKey(request.headers.get("authorization") ?? "") ?? "",
  });
  const memory = turn === undefined ? ofKey : connectionMemory(turn.local, ofKey);
  const own: RouteContext = {
    ...context,
    readJson: async (scan) => {
      const { body, keeper } = await recallBody(await context.readJson(scan), memory, { ...context, scan });
      own.keeper = keeper;
      return body;
    },
  };
  return turn?.isWarmUp === true ? warmUp(own) : serve(responses, request, own);
}
