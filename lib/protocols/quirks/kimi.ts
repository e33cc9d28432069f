import { compatible, compatibleBody } from "./compatible.ts";
import type { Quirk } from "./quirk.ts";
import { restoreReasoningContent, writeThinkingSwitch } from "./thinking.ts";

/**
 * Kimi, by Moonshot, requires its reasoning back with tool calls and has a `thinking` switch, both as DeepSeek does.
 */
export const kimi: Quirk = {
  dialect: { ...compatible.dialect, unsignedReasoning: true },
  body: (body, prompt, dropped) =>
    writeThinkingSwitch(restoreReasoningContent(compatibleBody(body, dropped)), prompt.reasoning),
};
