/** DeepSeek. */
import { compatible, compatibleBody } from "./compatible.ts";
import { mapMessages, type Quirk } from "./quirk.ts";
import { restoreReasoningContent, writeThinkingSwitch } from "./thinking.ts";

/** DeepSeek wants its unsigned reasoning back with tool calls, and knows one switch for thinking. */
export const deepseek: Quirk = {
  dialect: { ...compatible.dialect, unsignedReasoning: true },
  body(body, prompt, dropped) {
    const switched = writeThinkingSwitch(restoreReasoningContent(compatibleBody(body, dropped)), prompt.reasoning);
    // A null beside calls is refused by some of its hosts; an empty text says the same.
    return mapMessages(switched, (message) => message.content === null ? { ...message, content: "" } : message);
  },
};
