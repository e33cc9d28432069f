import { ReplyAggregator } from "../canonical/aggregate_events.ts";
import type { Reply } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type JsonObject } from "../../json/mod.ts";
import type { Origin } from "../upstream_codec.ts";
import { errorOf } from "./read_error.ts";
import { eventReader } from "./read_stream.ts";

/**
 * Reads a message object, as the stream that it would have been. @throws {GatewayError} `upstream` for anything else,
 * or the error in its place
 */
export function readReply(body: JsonObject, origin: Origin): Reply {
  if (body.type === "error" || isObject(body.error)) throw errorOf(body.error);
  if (!Array.isArray(body.content)) {
    throw new GatewayError("upstream", "Cannot read the upstream's answer: it has no content");
  }
  const machine = eventReader(origin);
  const folder = new ReplyAggregator();
  for (const event of streamOf(body, body.content)) folder.pushAll(machine.push(event));
  folder.pushAll(machine.end());
  return folder.end();
}

function* streamOf(message: JsonObject, content: readonly unknown[]): Generator<JsonObject> {
  const { id, usage, stop_reason, stop_sequence, stop_details } = message;
  yield { type: "message_start", message: { id, usage } };
  for (const [index, block] of content.entries()) {
    yield { type: "content_block_start", index, content_block: isObject(block) ? block : null };
    yield { type: "content_block_stop", index };
  }
  yield { type: "message_delta", delta: { stop_reason, stop_sequence, stop_details }, usage };
  yield { type: "message_stop" };
}
