/**
 * Relays messages. Edits: the model id at the start, and corrections for servers that differ from Anthropic: official
 * clients need an `event:` line, a single start and an end.
 */
import type { Frame } from "../codec.ts";
import { findInFrame, type Relay, withModel } from "../relay.ts";
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
        return [{ ...withEvent, data: withModel(frame, ["message", "model"], context.model) }];
      },
      end: () => hasStopped ? [] : [STOP],
      fail: (error) => streamWriter(context).push({ type: "error", error }),
    };
  },
};

function typeOf(frame: Frame): string | undefined {
  const span = findInFrame(frame, ["type"]);
  return span === undefined ? undefined : /^"(\w+)"$/.exec(frame.data.slice(span.start, span.end))?.[1];
}
