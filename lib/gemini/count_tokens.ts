/**
 * Answers `POST /v1beta/models/{model}:countTokens`: counts the input of a request without sending it to an upstream.
 */
import { isObject } from "../json/mod.ts";
import { checkBody } from "../protocols/fields.ts";
import { gemini, inCamelCase, readSteps } from "../protocols/gemini/mod.ts";
import { findModel } from "../request/candidates.ts";
import { countingPermissions, countInput } from "../request/count_tokens.ts";
import { runSlicedNow } from "../scheduler.ts";
import { jsonResponse } from "../server/json_response.ts";
import type { RouteContext } from "../server/router.ts";

/**
 * Counts system instruction, tools, contents and media in o200k tokens. The body has only the contents, or a complete
 * request as `generateContentRequest`.
 * @throws {GatewayError} as `serve` before admission
 */
export async function countTokens(request: Request, context: RouteContext, model: string): Promise<Response> {
  const body = await context.readJson();
  const value = inCamelCase(body.value);
  const { generateContentRequest: fullRequest } = value;
  const counted = { ...isObject(fullRequest) ? fullRequest : value, model, stream: false };
  checkBody(gemini.schema, counted);
  const prompt = await runSlicedNow(readSteps(counted, countingPermissions(context)));
  findModel(model, context);
  return jsonResponse({ totalTokens: await countInput(prompt, { context, body, signal: request.signal }) });
}
