/**
 * Relays messages. Edits: the model id at the start, and corrections for servers that differ from Anthropic: official
 * clients need an `event:` line, a single start with usage, and an end.
 */
import { findValue, spliceMembers } from "../../json/mod.ts";
import type { Frame } from "../codec.ts";
import { editMember, findInFrame, type Relay, withModel } from "../relay.ts";
import { streamWriter } from "./write_stream.ts";

const START = "message_start";
const STOP: Frame = { event: "message_stop", data: '{"type":"message_stop"}' };

/** The relay of messages. */
export const messagesRelay: Relay = {
  machine(context) {
    let hasStarted = false;
    let hasStopped = false;
    return {
      push(frame) {
        const event = frame.event ?? typeOf(frame);
        const withEvent = event === undefined ? frame : { event, data: frame.data };
        if (event === STOP.event) hasStopped = true;
        if (event !== START) return [withEvent];
        // A server in between may repeat the start. The reader of the answer refuses the start of another message.
        if (hasStarted) return [];
        hasStarted = true;
        return [{ ...withEvent, data: withUsage(withModel(frame, ["message", "model"], context.model)) }];
      },
      end: () => hasStopped ? [] : [STOP],
      fail: (error) => streamWriter(context).push({ type: "error", error }),
    };
  },
};

/** Returns a start with usage. The usage at the end of the answer replaces it. */
function withUsage(start: string): string {
  const usage = findValue(start, ["message", "usage"]);
  if (usage !== undefined && start[usage.start] === "{") return start;
  return editMember(
    start,
    "message",
    (message) => spliceMembers(message, { usage: '{"input_tokens":0,"output_tokens":0}' }),
  );
}

function typeOf(frame: Frame): string | undefined {
  const span = findInFrame(frame, ["type"]);
  return span === undefined ? undefined : /^"(\w+)"$/.exec(frame.data.slice(span.start, span.end))?.[1];
}
