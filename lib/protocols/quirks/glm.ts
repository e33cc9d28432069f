/** GLM, by Z.ai. */
import { compatible, compatibleBody } from "./compatible.ts";
import type { Quirk } from "./quirk.ts";
import { writeThinkingSwitch } from "./thinking.ts";

/** GLM has one switch for thinking. */
export const glm: Quirk = {
  dialect: compatible.dialect,
  body: (body, prompt, dropped) => writeThinkingSwitch(compatibleBody(body, dropped), prompt.reasoning),
};
