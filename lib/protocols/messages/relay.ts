/** Messages through and through: the only edit is the model's id at the start. */
import { findValue, replaceSpan } from "../../json_splice.ts";
import type { Echo, Frame } from "../codec.ts";
import type { Relay } from "../relay.ts";
import { writer } from "./stream.ts";

/** Relays messages. */
export const messagesRelay: Relay = {
  bodyEdits: () => ({}),
  reply: (text, echo) => withModel(text, ["model"], echo),
  machine: (echo) => ({
    push: (frame) => [frame.event === "message_start" ? renamed(frame, echo) : frame],
    end: () => [],
    fail: (error) => writer(echo).push({ type: "error", error }),
  }),
};

function renamed(frame: Frame, echo: Echo): Frame {
  return { ...frame, data: withModel(frame.data, ["message", "model"], echo) };
}

function withModel(text: string, path: readonly string[], { model }: Echo): string {
  const span = findValue(text, path);
  return span === undefined ? text : replaceSpan(text, span, JSON.stringify(model));
}
