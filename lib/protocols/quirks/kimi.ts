/** Kimi, by Moonshot. */
import { compatible, compatibleBody } from "./compatible.ts";
import type { Quirk } from "./quirk.ts";
import { restoreReasoningContent, writeThinkingSwitch } from "./thinking.ts";

/** Kimi wants its reasoning back with tool calls, as DeepSeek does, and has the same switch. */
export const kimi: Quirk = {
  dialect: { ...compatible.dialect, unsignedReasoning: true },
  body: (body, prompt, dropped) =>
    writeThinkingSwitch(restoreReasoningContent(compatibleBody(body, dropped)), prompt.reasoning),
};
