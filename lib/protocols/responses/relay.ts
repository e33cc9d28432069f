/** Responses through and through: the model's id in the events that hold the response, and `[DONE]` at the end. */
import { findValue } from "../../json/mod.ts";
import { replaceSpan } from "../../text.ts";
import type { Frame } from "../codec.ts";
import { type Relay, withModel } from "../relay.ts";
import { streamWriter } from "./write_stream.ts";

const DONE: Frame = { data: "[DONE]" };

/** What a fresh writer says before an error; here it was said already. */
const OPENING = new Set(["response.created", "response.in_progress"]);

/** Relays responses. OpenAI's own stream has no end mark: it is added, as every other stream of this protocol has it. */
export const responsesRelay: Relay = {
  machine(echo) {
    /** The last frame that may tell its number. */
    let numbered = "";
    return {
      push(frame) {
        const { event, data } = frame;
        if (data === DONE.data) return [];
        if (data.includes('"sequence_number"')) numbered = data;
        if (!mayHave(data, "response")) return [frame];
        return [{ ...(event !== undefined && { event }), data: withModel(frame, ["response", "model"], echo.model) }];
      },
      end: () => [DONE],
      fail(error) {
        let last = sequenceNumber(numbered) ?? -1;
        return streamWriter(echo).push({ type: "error", error })
          .filter(({ event }) => last < 0 || event === undefined || !OPENING.has(event))
          .map((frame) => last < 0 ? frame : renumbered(frame, () => ++last));
      },
    };
  },
};

function renumbered(frame: Frame, next: () => number): Frame {
  const span = findValue(frame.data, ["sequence_number"]);
  return span === undefined ? frame : { ...frame, data: replaceSpan(frame.data, span, String(next())) };
}

function sequenceNumber(data: string): number | undefined {
  const span = findValue(data, ["sequence_number"]);
  const number = span === undefined ? NaN : Number(data.slice(span.start, span.end));
  return Number.isSafeInteger(number) ? number : undefined;
}

/** False where there can be no member of that name, however it is spelled. */
function mayHave(data: string, name: string): boolean {
  return data.includes(`"${name}"`) || data.includes("\\u");
}
