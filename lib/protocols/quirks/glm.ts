/** GLM, by Z.ai. */
import { compatible, compatibleBody } from "./compatible.ts";
import type { Mend } from "./mend.ts";
import { switchThinking } from "./thinking.ts";

/** GLM has one switch for thinking. */
export const glm: Mend = {
  dialect: compatible.dialect,
  body: (body, prompt, dropped) => switchThinking(compatibleBody(body, dropped), prompt.reasoning),
};
