/** The quirks of GLM. */
import { compatible, compatibleBody } from "./compatible.ts";
import type { Quirk } from "./quirk.ts";
import { writeThinkingSwitch } from "./thinking.ts";

/** GLM, by Z.ai, has a `thinking` switch instead of an effort. */
export const glm: Quirk = {
  dialect: compatible.dialect,
  body: (body, prompt, dropped) => writeThinkingSwitch(compatibleBody(body, dropped), prompt.reasoning),
};
