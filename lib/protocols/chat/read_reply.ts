/** Reads answers of chat upstreams that are not streamed. */
import { aggregateEvents } from "../canonical/aggregate_events.ts";
import { finishEvent, settledReason } from "../canonical/finish.ts";
import type { Reply, ReplySummary, TokenUsage } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import { nonEmptyStringOf, objectOf, objectsOf, stringOf } from "../members.ts";
import type { Origin } from "../upstream_codec.ts";
import { withReported } from "../extras.ts";
import { functionOf } from "./call_finder.ts";
import { ChatReplyReader } from "./chat_reply_reader.ts";
import { readOpenaiError } from "../read_openai_error.ts";
import { errorInside } from "../vendor_error.ts";
import { type ChatFinish, firstChoice, idOf, isFailure, readFinish, usageOf } from "./read_stream.ts";

/**
 * Reads a `chat.completion` object.
 * @throws {GatewayError} `upstream`, or the error that an answer with status 200 contains
 */
export function readReply(body: JsonObject, origin: Origin): Reply {
  const { choice, message, finish, usage } = readCompletion(body, origin);
  const id = idOf(body);
  const answer = new ChatReplyReader(origin);
  answer.push(message, id, choice.logprobs);
  const reason = answer.end(finish.reason);
  return aggregateEvents([
    { type: "start", ...(id !== "" && { id }) },
    ...answer.take(),
    finishEvent(reason, { ...finish, usage }),
  ]);
}

/** Reads the summary of a `chat.completion` object. @throws {GatewayError} as `UpstreamCodec.readSummary` */
export function readSummary(body: JsonObject, origin: Origin): ReplySummary {
  const { message: { tool_calls, function_call }, finish: { reason }, usage } = readCompletion(body, origin);
  const calls = [...objectsOf(tool_calls), { function: function_call ?? null }];
  const hasCalls = calls.some((call) => nonEmptyStringOf(functionOf(call).name) !== undefined);
  // A content filter may have stopped the answer within a call.
  if (reason === "refusal" && hasCalls) return readReply(body, origin);
  return { finish: settledReason(reason, hasCalls), usage };
}

/** A `chat.completion` object whose message is not read yet. */
interface Completion {
  choice: JsonObject;
  message: JsonObject;
  finish: ChatFinish;
  usage: TokenUsage;
}

function readCompletion(body: JsonObject, { tier: requestedTier }: Origin): Completion {
  if (isFailure(body)) throw errorInside(body, readOpenaiError(200, body));
  const choice = firstChoice(body);
  const message = objectOf(choice?.message);
  if (choice === undefined || message === undefined) {
    throw new GatewayError("upstream", "The model's vendor sent an invalid answer");
  }
  const usage = withReported(usageOf(body) ?? {}, { tier: stringOf(body.service_tier), requestedTier });
  return { choice, message, finish: readFinish(choice) ?? { reason: "end" }, usage };
}
