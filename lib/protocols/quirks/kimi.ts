/** The quirks of Kimi. */
import { compatible, compatibleBody } from "./compatible.ts";
import type { Quirk } from "./quirk.ts";
import { restoreReasoningContent, writeThinkingSwitch } from "./thinking.ts";

/**
 * Kimi, by Moonshot, requires that its reasoning comes back with tool calls and has a `thinking` switch, as DeepSeek
 * does.
 */
export const kimi: Quirk = {
  dialect: { ...compatible.dialect, unsignedReasoning: true },
  changesAllMessages: true,
  body: (body, prompt, dropped) =>
    writeThinkingSwitch(restoreReasoningContent(compatibleBody(body, dropped)), prompt.reasoning),
};
