/** A whole answer of a chat upstream. It is read as a stream of one chunk, so that both are read the same. */
import { Folder } from "../../canonical/fold.ts";
import type { Event, Reply } from "../../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json.ts";
import { objectOf } from "../members.ts";
import type { Origin } from "../upstream_codec.ts";
import { AnswerReader } from "./read_answer.ts";
import { readError } from "./read_error.ts";
import { readFinish } from "./read_finish.ts";
import { firstChoice, idOf, isFailure, usageOf } from "./read_stream.ts";

/** Reads a `chat.completion` object. @throws {GatewayError} `upstream`, or the error that came inside a 200 */
export function readReply(body: JsonObject, origin: Origin): Reply {
  if (isFailure(body)) throw readError(200, body);
  const choice = firstChoice(body);
  const message = objectOf(choice?.message);
  if (choice === undefined || message === undefined) {
    throw new GatewayError("upstream", "The model's vendor sent something that is no answer");
  }
  const answer = new AnswerReader(origin);
  const id = idOf(body);
  answer.push(message, id);
  const finish = readFinish(choice) ?? { reason: "end" as const };
  const reason = answer.end(finish.reason);
  const folder = new Folder();
  const events: Event[] = [
    { type: "start", ...(id !== "" && { id }) },
    ...answer.take(),
    {
      type: "finish",
      reason,
      ...(reason === "stop_sequence" && finish.stopSequence !== undefined && { stopSequence: finish.stopSequence }),
      usage: usageOf(body) ?? {},
    },
  ];
  for (const event of events) folder.push(event);
  return folder.end();
}
