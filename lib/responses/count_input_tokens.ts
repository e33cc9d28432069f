/** Answers `POST /v1/responses/input_tokens`: counts the input of a request without sending it to an upstream. */
import { checkBody } from "../protocols/fields.ts";
import { responses } from "../protocols/responses/mod.ts";
import { findModel } from "../request/candidates.ts";
import { countingPermissions, countInput } from "../request/count_tokens.ts";
import { jsonResponse } from "../server/json_response.ts";
import type { RouteContext } from "../server/router.ts";
import { recallBody } from "./recall_body.ts";
import { memoryOf } from "./serve_responses.ts";

/**
 * Counts instructions, tools, input and media in o200k tokens.
 * @throws {GatewayError} as `serveResponses` before admission
 */
export async function countInputTokens(request: Request, context: RouteContext): Promise<Response> {
  const { body } = await recallBody(await context.readJson(), memoryOf(request, context), context);
  checkBody(responses.schema, body.value);
  const prompt = responses.readPrompt(body.value, countingPermissions(context));
  findModel(prompt.model, context);
  const input_tokens = await countInput(prompt, { context, body, signal: request.signal });
  return jsonResponse({ object: "response.input_tokens", input_tokens });
}
