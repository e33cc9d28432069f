/** Reads whole answers of chat upstreams, as streams of one chunk. */
import { aggregateEvents } from "../canonical/aggregate_events.ts";
import { finishEvent } from "../canonical/finish.ts";
import type { Reply } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import { withReported } from "../extras.ts";
import { objectOf, stringOf } from "../members.ts";
import type { Origin } from "../upstream_codec.ts";
import { ChatReplyReader } from "./chat_reply_reader.ts";
import { readOpenaiError } from "../read_openai_error.ts";
import { type ChatFinish, readFinish } from "./read_finish.ts";
import { firstChoice, idOf, isFailure, usageOf } from "./read_stream.ts";

const END: ChatFinish = { reason: "end" };

/**
 * Reads a `chat.completion` object. @throws {GatewayError} `upstream`, or the error of a failed answer with status 200
 */
export function readReply(body: JsonObject, origin: Origin): Reply {
  if (isFailure(body)) throw readOpenaiError(200, body);
  const choice = firstChoice(body);
  const message = objectOf(choice?.message);
  if (choice === undefined || message === undefined) {
    throw new GatewayError("upstream", "The model's vendor sent an invalid answer");
  }
  const id = idOf(body);
  const finish = readFinish(choice) ?? END;
  const tier = stringOf(body.service_tier);
  const usage = withReported(usageOf(body) ?? {}, { tier, asked: origin.tier });
  const answer = new ChatReplyReader(origin);
  answer.push(message, id);
  const reason = answer.end(finish.reason);
  return aggregateEvents([
    { type: "start", ...(id !== "" && { id }) },
    ...answer.take(),
    finishEvent(reason, { ...finish, usage }),
  ]);
}
