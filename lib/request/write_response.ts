/** Writes the responses of text requests. */
import { streamHeaders } from "../server/json_response.ts";
import { wholeAnswer } from "../server/watched_stream.ts";
import { writeJsonSliced } from "../json/mod.ts";
import { type Amount, formatUsd } from "../billing/money.ts";
import { readLongCalls } from "../upstreams/long_inputs.ts";
import { CLIENT_DISCONNECTED } from "./request_meter.ts";
import type { TargetReply } from "./send_to_targets.ts";
import type { SettledReply } from "./settle_reply.ts";
import type { RequestState } from "./state.ts";
import type { StreamLoop } from "./stream_loop.ts";
import type { AnswerHeader } from "../server/router.ts";
import { headersOfAttempt } from "./attempts.ts";
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";

/** Writes an answer that is not streamed. Its usage is the billed usage, even if the upstream reported another. */
export async function writeReply(
  { reply, admitted: { client } }: TargetReply,
  { tokens, source, cost }: SettledReply,
  state: RequestState,
): Promise<Response> {
  const { codec, context: { keeper, gateway, timers } } = state;
  const watched = { unreadMs: gateway.config.resource_limits.answer_unread_ms, timers };
  addAnswerHeaders(state, cost);
  if ("text" in reply) {
    await keeper?.written?.();
    return wholeAnswer([source === "upstream" ? reply.text : codec.withUsage(reply.text, tokens)], watched);
  }
  const billed = source === "upstream" ? reply : { ...reply, usage: tokens };
  const read = await readLongCalls(billed, codec.protocol);
  const body = codec.writeReply(read, client.responseContext);
  if (keeper !== undefined) await keeper.written?.();
  return wholeAnswer([await writeJsonSliced(body)], watched);
}

/** Returns the response of a stream. @param isInTime true if the answer has begun, false if keep-alives come first */
export function streamResponse(loop: StreamLoop, isInTime: boolean, state: RequestState): Response {
  const { gateway, record } = state.context;
  if (isInTime && state.clientHasDisconnected) {
    gateway.backgroundTasks.add(loop.disconnect());
    return new Response(null, { status: CLIENT_DISCONNECTED });
  }
  if (isInTime) addAnswerHeaders(state);
  // Another target than the current one may still answer a late stream, so its headers name no target.
  const headers = isInTime ? {} : Object.fromEntries(changeHeaders(state));
  record.streamed = true;
  const { contentType } = loop;
  return new Response(loop.body(), {
    headers: { ...streamHeaders(headers), ...(contentType !== undefined && { "content-type": contentType }) },
  });
}

/** Returns the headers that name unsupported parameters and the output limit that the gateway set. */
function changeHeaders(state: RequestState): AnswerHeader[] {
  const { cap } = state.admittedAs(state.attempt?.model);
  const headers = droppedHeader(state.dropped);
  if (cap !== undefined) headers.push(["x-sluice-max-tokens", String(cap.tokens)]);
  return headers;
}

/**
 * Adds the upstream's headers for the client, and the headers that name the target, the changes of the request, and the
 * cost if it is known.
 */
function addAnswerHeaders(state: RequestState, cost?: Amount): void {
  const { attempt, forwarded, meter, context: { answerHeaders } } = state;
  // The upstream's headers come first, because later headers replace earlier ones of the same name.
  if (forwarded !== undefined) answerHeaders.push(...forwarded);
  if (attempt !== undefined) answerHeaders.push(...headersOfAttempt(attempt, meter.entry));
  answerHeaders.push(...changeHeaders(state));
  if (cost !== undefined) answerHeaders.push(["x-sluice-cost", formatUsd(cost)]);
}

/** Longest header, in characters. It needs a limit because the client chooses the names of unknown members. */
const MAX_HEADER_LENGTH = 2_000;

/** Returns the header `x-sluice-dropped`; none without dropped parameters. Special characters are percent-encoded. */
export function droppedHeader({ names }: UnsupportedParameters): AnswerHeader[] {
  if (names.length === 0) return [];
  let value = "";
  for (const name of names) {
    const next = name.toWellFormed().replace(/[^\x21-\x24\x26-\x2b\x2d-\x7e]/gu, encodeURIComponent);
    if (value.length + next.length > MAX_HEADER_LENGTH) {
      return [["x-sluice-dropped", `${value}${value === "" ? "" : ", "}...`]];
    }
    value += value === "" ? next : `, ${next}`;
  }
  return [["x-sluice-dropped", value]];
}
