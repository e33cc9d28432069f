/** Answers `POST /v1/responses/compact`: compacts a conversation. */
import { isObject, type Json, type JsonObject, parseJson } from "../json/mod.ts";
import { objectsOf } from "../protocols/members.ts";
import { jsonResponse } from "../server/json_response.ts";
import type { RouteContext } from "../server/router.ts";
import { noSummary, triggeredBody } from "./compact.ts";
import { SUMMARY_START } from "./compaction_items.ts";
import { serveResponses } from "./serve_responses.ts";

/**
 * Compacts a conversation: its user messages stay, and a compaction item replaces everything else.
 * @throws {GatewayError} as `serveResponses`, and `upstream` if the model wrote no summary
 */
export async function compactConversation(request: Request, context: RouteContext): Promise<Response> {
  let userMessages: JsonObject[] = [];
  const compactContext: RouteContext = {
    ...context,
    readJson: async (scan) => await triggeredBody(await context.readJson(), { ...context, scan }),
  };
  const response = await serveResponses(
    request,
    compactContext,
    ({ value }) => userMessages = userMessagesOf(value.input),
  );
  const answer = parseJson(await response.text());
  if (!isObject(answer)) throw noSummary();
  const compactions = objectsOf(answer.output).filter(({ type }) => type === "compaction");
  if (compactions.length === 0) throw noSummary();
  return jsonResponse({
    id: answer.id ?? null,
    object: "response.compaction",
    created_at: answer.created_at ?? null,
    output: [...userMessages, ...compactions],
    usage: answer.usage ?? null,
  });
}

/**
 * Returns the user messages as output items. An earlier summary is left out, because it becomes part of the new one.
 */
function userMessagesOf(input: Json | undefined): JsonObject[] {
  return objectsOf(input).flatMap(({ type = "message", role, content }, index) => {
    if (type !== "message" || role !== "user") return [];
    const parts = typeof content === "string" ? [{ type: "input_text", text: content }] : objectsOf(content);
    const [first] = parts;
    if (typeof first?.text === "string" && first.text.startsWith(SUMMARY_START)) return [];
    return [{ type: "message", id: `msg_${index}`, role, status: "completed", content: [...parts] }];
  });
}
