/** Kimi, by Moonshot. */
import { compatible, compatibleBody } from "./compatible.ts";
import type { Mend } from "./mend.ts";
import { returnReasoning, switchThinking } from "./thinking.ts";

/** Kimi wants its reasoning back with tool calls, as DeepSeek does, and has the same switch. */
export const kimi: Mend = {
  dialect: { ...compatible.dialect, unsignedReasoning: true },
  body: (body, prompt, dropped) => switchThinking(returnReasoning(compatibleBody(body, dropped)), prompt.reasoning),
};
