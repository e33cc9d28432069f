/**
 * Relays responses. Edits: the model id in events with the response, and `[DONE]` at the end. If the answer is stored,
 * the request asks for encrypted reasoning.
 */
import { findValue, memberText, parseJson, scanMembers, writeJson } from "../../json/mod.ts";
import { replaceSpan } from "../../text.ts";
import type { Echo, Frame } from "../codec.ts";
import { listOf } from "../members.ts";
import { type Relay, withModel } from "../relay.ts";
import { hideInFrame, hideInResponse } from "./hide_encrypted.ts";
import { FrameKeeper, keepReplyText } from "./keep_relayed.ts";
import { ENCRYPTED } from "./encrypted_content.ts";
import { streamWriter } from "./write_stream.ts";

const DONE: Frame = { data: "[DONE]" };

/** Events that a new writer sends before an error; here they are sent already. */
const OPENING = new Set(["response.created", "response.in_progress"]);

/** OpenAI's own stream has no end mark, but every other stream of this protocol has one, so it is added. */
export const responsesRelay: Relay = {
  // Otherwise only the host knows the reasoning, and only if it stores responses.
  keeperEdits(echo, body) {
    if (!asksForEncrypted(echo)) return {};
    return { include: writeJson([...listOf(parseJson(memberText(body, "include") ?? "[]")), ENCRYPTED]) };
  },
  keepReply(answer, echo) {
    keepReplyText(answer.text, echo.keeper);
    return asksForEncrypted(echo) ? scanMembers(hideInResponse(answer.text)) : answer;
  },
  machine(echo) {
    /** The last frame with a sequence number. */
    let numbered = "";
    const keeper = echo.keeper?.keep === undefined ? undefined : new FrameKeeper(echo.keeper);
    const hides = asksForEncrypted(echo);
    return {
      push(relayed) {
        const frame = hides ? hideInFrame(relayed) : relayed;
        const { event, data } = frame;
        if (data === DONE.data) return [];
        if (data.includes('"sequence_number"')) numbered = data;
        keeper?.push(relayed);
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

/** Returns whether the gateway requests encrypted reasoning for the stored answer although the client does not. */
function asksForEncrypted({ keeper, prompt: { reasoning } }: Echo): boolean {
  return keeper?.keep !== undefined && reasoning !== undefined && reasoning.encrypted !== true;
}

function renumbered(frame: Frame, next: () => number): Frame {
  const span = findValue(frame.data, ["sequence_number"]);
  return span === undefined ? frame : { ...frame, data: replaceSpan(frame.data, span, String(next())) };
}

function sequenceNumber(data: string): number | undefined {
  const span = findValue(data, ["sequence_number"]);
  const number = span === undefined ? NaN : Number(data.slice(span.start, span.end));
  return Number.isSafeInteger(number) ? number : undefined;
}

/** False if there is certainly no member of this name, in any spelling. */
function mayHave(data: string, name: string): boolean {
  return data.includes(`"${name}"`) || data.includes("\\u");
}
