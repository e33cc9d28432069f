/** The quirks of Groq. */
import { compatible, compatibleBody } from "./compatible.ts";
import { keepKnownMembers, type KnownMembers } from "./known_members.ts";
import { mapMessages, type Quirk } from "./quirk.ts";
import { wantsThinking } from "./thinking.ts";

/**
 * Some of Groq's models write reasoning into the text, in `<think>` tags, unless the request has `reasoning_format`.
 * Groq answers 400 ("property 'reasoning_content' is unsupported") to members of answers that it does not know.
 * https://github.com/tashfeenahmed/freellmapi/issues/1070
 */
export const groq: Quirk = {
  dialect: { ...compatible.dialect, unsignedReasoning: true },
  changesAllMessages: true,
  body(body, prompt, dropped, row) {
    const isWanted = typeof body.reasoning_effort === "string" && wantsThinking(prompt.reasoning) === true;
    const others = mapMessages(compatibleBody(body, dropped), keepKnownMembers(MESSAGES, prompt, { dropped, row }));
    // Models without reasoning refuse `reasoning_format`.
    if (!isWanted || others.reasoning_format !== undefined) return others;
    return { ...others, reasoning_format: "parsed" };
  },
};

const MESSAGES: KnownMembers = {
  members: new Map([["assistant", ["tool_calls", "function_call", "name"]]]),
  withThought: (message, thought) => ({ ...message, reasoning: thought }),
};
