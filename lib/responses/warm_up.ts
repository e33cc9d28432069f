/** Serves warm-ups: a client sends the beginning of its next request, and gets an id. No model is called. */
import { checkBody } from "../protocols/fields.ts";
import { responses } from "../protocols/responses/mod.ts";
import { findModel } from "../request/candidates.ts";
import type { RouteContext } from "../server/router.ts";
import { formatFrames } from "../server/sse.ts";
import { streamHeaders } from "../server/json_response.ts";

/** Placeholder for an empty input, which is allowed only in warm-ups. */
const NO_INPUT = "-";

/**
 * Answers with an empty response, and stores the input. It costs nothing.
 * @throws {GatewayError} as `serve` before anything is reserved
 */
export async function warmUp(context: RouteContext): Promise<Response> {
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
