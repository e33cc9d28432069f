/** The quirks of DeepSeek. */
import { compatible, compatibleBody } from "./compatible.ts";
import { mapMessages, type Quirk } from "./quirk.ts";
import { restoreReasoningContent, writeThinkingSwitch } from "./thinking.ts";

/**
 * DeepSeek requires that its unsigned reasoning comes back with tool calls, and has a `thinking` switch instead of an
 * effort.
 */
export const deepseek: Quirk = {
  dialect: { ...compatible.dialect, unsignedReasoning: true },
  changesAllMessages: true,
  body(body, prompt, dropped) {
    const switched = writeThinkingSwitch(restoreReasoningContent(compatibleBody(body, dropped)), prompt.reasoning);
    // Some hosts of DeepSeek refuse null content beside tool calls; an empty string means the same.
    return mapMessages(switched, (message) => message.content === null ? { ...message, content: "" } : message);
  },
};
