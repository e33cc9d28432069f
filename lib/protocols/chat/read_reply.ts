/** Reads whole answers of chat upstreams, as streams of one chunk. */
import { ReplyAggregator } from "../canonical/aggregate_events.ts";
import type { Reply, ReplyEvent } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import { withReported } from "../extras.ts";
import { objectOf, stringOf } from "../members.ts";
import type { Origin } from "../upstream_codec.ts";
import { ChatReplyReader } from "./chat_reply_reader.ts";
import { readError } from "./read_error.ts";
import { type ChatFinish, readFinish, settledReason } from "./read_finish.ts";
import { firstChoice, idOf, isFailure, usageOf } from "./read_stream.ts";

const END: ChatFinish = { reason: "end" };

/**
 * Reads a `chat.completion` object. @throws {GatewayError} `upstream`, or the error of a failed answer with status 200
 */
export function readReply(body: JsonObject, origin: Origin): Reply {
  if (isFailure(body)) throw readError(200, body);
  const choice = firstChoice(body);
  const message = objectOf(choice?.message);
  if (choice === undefined || message === undefined) {
    throw new GatewayError("upstream", "The model's vendor sent an invalid answer");
  }
  const id = idOf(body);
  const finish = readFinish(choice) ?? END;
  const tier = stringOf(body.service_tier);
  const usage = withReported(usageOf(body) ?? {}, { tier, asked: origin.tier });
  const text = onlyText(message);
  if (text !== undefined) {
    const reason = settledReason(finish.reason, false);
    const reply: Reply = { blocks: [{ type: "text", text }], finish: reason, usage };
    if (id !== "") reply.id = id;
    if (reason === "stop_sequence" && finish.stopSequence !== undefined) reply.stopSequence = finish.stopSequence;
    return reply;
  }
  const answer = new ChatReplyReader(origin);
  answer.push(message, id);
  const reason = answer.end(finish.reason);
  const folder = new ReplyAggregator();
  const events: ReplyEvent[] = [
    { type: "start", ...(id !== "" && { id }) },
    ...answer.take(),
    {
      type: "finish",
      reason,
      ...(reason === "stop_sequence" && finish.stopSequence !== undefined && { stopSequence: finish.stopSequence }),
      usage,
    },
  ];
  for (const event of events) folder.push(event);
  return folder.end();
}

/** Returns the text of a message that has nothing else, which needs no ordering. */
function onlyText(message: JsonObject): string | undefined {
  const { content } = message;
  if (typeof content !== "string" || content.trim() === "") return undefined;
  for (const name in message) {
    const value = message[name];
    const isNone = value === null || (Array.isArray(value) && value.length === 0);
    if (!isNone && name !== "role" && name !== "content") return undefined;
  }
  return content;
}
