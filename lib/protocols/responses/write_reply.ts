import { eventsOf } from "../canonical/aggregate_events.ts";
import type { Reply } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { Echo } from "../codec.ts";
import { objectOf } from "../members.ts";
import { outputItemWriter } from "./write_stream.ts";

/** Writes a whole answer: the response at the end of its stream. */
export function writeReply(reply: Reply, echo: Echo): JsonObject {
  const machine = outputItemWriter(echo);
  const last = eventsOf(reply).flatMap((event) => machine.push(event)).at(-1);
  const response = objectOf(last?.members.response);
  if (response === undefined) throw new RangeError("Cannot write the reply: its events have no end");
  return response;
}
