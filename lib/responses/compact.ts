/**
 * Compacts conversations for upstreams that cannot do so themselves: the model writes a summary, which the client
 * receives as one encrypted item.
 */
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { isObject, type Json, type JsonObject, parseJson, parsePlain, scanElements, writeJson } from "../json/mod.ts";
import type { AnswerKeeper, Frame } from "../protocols/codec.ts";
import { listOf, objectOf, objectsOf, stringOf } from "../protocols/members.ts";
import { COMPLETE_EVENTS, responses } from "../protocols/responses/mod.ts";
import { jsonResponse } from "../server/json_response.ts";
import type { JsonBody } from "../server/parse_body.ts";
import { formatFrame, SseReader } from "../server/sse.ts";
import { COMPACTION_PROMPT, sealCompaction } from "./compaction_items.ts";
import { compactsUpstream } from "./compacts_itself.ts";
import { type BodyContext, editBody, inputItems } from "./recall_body.ts";

const TRIGGER = "compaction_trigger";

/** The key and the keeper for a compaction item. */
export interface Compaction {
  /** The API key for which the item is encrypted. */
  secret: string;
  /** Stores the item for later requests. */
  keeper: AnswerKeeper;
}

/**
 * Returns whether the gateway must create the summary: the request asks for a compaction, and a model that may answer
 * does not support that.
 */
export function needsSummary(
  head: JsonObject,
  gateway: Pick<Gateway, "catalog" | "config" | "upstreams">,
): boolean {
  return listOf(head.input).some(isTrigger) && !compactsUpstream(head, gateway);
}

/**
 * Returns the body that requests the summary. The tools stay, because the conversation contains calls of them, but
 * `tool_choice` becomes `none`.
 */
export function summaryBody(body: JsonBody, context: BodyContext): Promise<JsonBody> {
  const list = `[${inputItems(body)}]`;
  const items = [...scanElements(list)].map(({ start, end }) => list.slice(start, end)).filter((text) =>
    !isTriggerText(text)
  );
  items.push(JSON.stringify({ role: "user", content: COMPACTION_PROMPT }));
  return editBody(body, {
    input: `[${items.join(",")}]`,
    // The requested output format does not apply to the summary.
    text: undefined,
    tool_choice: listOf(body.value.tools).length > 0 ? '"none"' : undefined,
  }, context);
}

/** Returns the body with a compaction trigger at the end of its input, and with `stream: false`. */
export function triggeredBody(body: JsonBody, context: BodyContext): Promise<JsonBody> {
  const items = inputItems(body);
  const trigger = `{"type":"${TRIGGER}"}`;
  return editBody(body, { input: `[${items === "" ? trigger : `${items},${trigger}`}]`, stream: "false" }, context);
}

/** Converts the answer to `summaryBody` into a compaction item. @throws {GatewayError} `upstream` without a summary */
export async function compactedResponse(response: Response, compaction: Compaction): Promise<Response> {
  if (response.body === null) return response;
  if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) {
    return new Response(response.body.pipeThrough(compactEvents(compaction)), response);
  }
  const answer = parseJson(await response.text());
  const compacted = isObject(answer) ? await compact(answer, compaction) : undefined;
  if (compacted === undefined) throw noSummary();
  return jsonResponse(compacted.response);
}

/** Replaces the summary's events by keep-alives, and sends the item at the end. */
function compactEvents(compaction: Compaction): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const reader = new SseReader(Infinity);
  return new TransformStream({
    async transform(chunk, controller) {
      let text = "";
      for (const frame of reader.push(decoder.decode(chunk, { stream: true }))) {
        text += await compactFrame(frame, compaction);
      }
      controller.enqueue(encoder.encode(text === "" ? responses.keepAlive : text));
    },
  });
}

/** Events that are passed on unchanged. */
const PASSED_EVENTS = new Set(["response.created", "response.in_progress", "response.failed", "error"]);

async function compactFrame(frame: Frame, compaction: Compaction): Promise<string> {
  if (frame.data === "[DONE]") return formatFrame(frame);
  const parsed = parseJson(frame.data);
  const event = frame.event ?? (isObject(parsed) ? stringOf(parsed.type) : undefined) ?? "";
  if (PASSED_EVENTS.has(event)) return formatFrame(frame);
  if (!COMPLETE_EVENTS.has(event)) return "";
  const response = isObject(parsed) ? objectOf(parsed.response) : undefined;
  if (!isObject(parsed) || response === undefined) return "";
  const compacted = await compact(response, compaction);
  // Events 0 and 1 were already sent.
  const finalEvent = (sequence_number: number, type: string, members: JsonObject): string =>
    formatFrame({ event: type, data: writeJson({ ...parsed, type, sequence_number, ...members }) });
  if (compacted === undefined) {
    const { message } = noSummary();
    const error = { code: "server_error", message };
    const failed = { ...response, status: "failed", output: [], error };
    return eventText(2, "error", { ...error, param: null, error: { type: "server_error", ...error, param: null } }) +
      finalEvent(3, "response.failed", { response: failed });
  }
  const { item } = compacted;
  return eventText(2, "response.output_item.added", { output_index: 0, item }) +
    eventText(3, "response.output_item.done", { output_index: 0, item }) +
    finalEvent(4, event, { response: compacted.response });
}

function eventText(sequence_number: number, type: string, members: JsonObject): string {
  return formatFrame({ event: type, data: writeJson({ type, sequence_number, ...members }) });
}

/** Returns the response with the compaction item as its output; `undefined` without a summary. The item is stored. */
async function compact(
  response: JsonObject,
  { secret, keeper }: Compaction,
): Promise<{ response: JsonObject; item: JsonObject } | undefined> {
  const summary = objectsOf(response.output).flatMap(({ type, content }) =>
    type === "message" ? objectsOf(content) : []
  )
    .map(({ text }) => stringOf(text) ?? "").join("");
  if (summary.trim() === "") return undefined;
  const responseId = stringOf(response.id) ?? "";
  const id = `cmp_${responseId.replace(/^resp_/, "")}`;
  const item = await sealCompaction(summary, { id, secret });
  keeper.keep?.({ id: responseId, output: [{ id, text: JSON.stringify(item) }] });
  await keeper.written?.();
  return { response: { ...response, output: [item] }, item };
}

/** Returns the error for an answer without a summary. */
export function noSummary(): GatewayError {
  return new GatewayError("upstream", "The model wrote no summary of the conversation");
}

function isTrigger(item: Json): boolean {
  return isObject(item) && item.type === TRIGGER;
}

function isTriggerText(text: string): boolean {
  const item = text.includes(TRIGGER) ? parsePlain(text) : undefined;
  return item !== undefined && isTrigger(item);
}
