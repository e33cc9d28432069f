/** Writes the responses of text requests. */
import type { Reply } from "../protocols/canonical/types.ts";
import { jsonResponse, jsonText } from "../server/json_response.ts";
import { streamHeaders } from "../server/stream_headers.ts";
import { writeJsonSliced } from "../json/mod.ts";
import { LONG_TEXT_CHARS } from "../scheduler.ts";
import { formatUsd } from "../billing/money.ts";
import { readLongCalls } from "../upstreams/long_inputs.ts";
import { addAnswerHeaders, changeHeaders } from "./answer_headers.ts";
import { CLIENT_LEFT } from "./request_meter.ts";
import type { TargetReply } from "./send_to_targets.ts";
import type { SettledReply } from "./settle_reply.ts";
import type { RequestState } from "./state.ts";
import type { StreamLoop } from "./stream_loop.ts";

/** Writes a whole answer, with the usage that was billed, whatever the upstream reported. */
export async function writeReply(
  { reply, text, admitted: { client } }: TargetReply,
  { tokens, source, cost }: SettledReply,
  state: RequestState,
): Promise<Response> {
  const { codec, context } = state;
  addAnswerHeaders(state);
  context.answerHeaders.push(["x-sluice-cost", formatUsd(cost)]);
  const { keeper } = context;
  if (text !== undefined && keeper !== undefined) await keeper.written?.();
  if (text !== undefined) return jsonText(source === "upstream" ? text : codec.withUsage(text, tokens));
  const billed = source === "upstream" ? reply : { ...reply, usage: tokens };
  const length = lengthOf(billed);
  const read = await readLongCalls(billed, codec.protocol);
  const body = codec.writeReply(read, client.echo);
  if (keeper !== undefined) await keeper.written?.();
  return length > LONG_TEXT_CHARS ? jsonText(await writeJsonSliced(body)) : jsonResponse(body);
}

/** The response of a stream. `isInTime`: its answer has begun. */
export function streamResponse(loop: StreamLoop, isInTime: boolean, state: RequestState): Response {
  if (!isInTime) {
    // Another target than the present one may still answer: only changes of the request are named.
    return new Response(loop.body(), { headers: streamHeaders(Object.fromEntries(changeHeaders(state))) });
  }
  if (state.clientHasLeft) {
    state.context.gateway.backgroundTasks.add(loop.leave());
    return new Response(null, { status: CLIENT_LEFT });
  }
  addAnswerHeaders(state);
  return new Response(loop.body(), { headers: streamHeaders({}) });
}

/** Characters of the text in an answer. */
function lengthOf({ blocks }: Reply): number {
  let length = 0;
  for (const block of blocks) {
    if (block.type === "tool_call") length += block.arguments.length;
    else if ("text" in block) length += block.text.length;
  }
  return length;
}
