import { compatible } from "./compatible.ts";
import { type Quirk, rename } from "./quirk.ts";

/** xAI takes the newer `max_completion_tokens` and has no `developer` role. */
export const xai: Quirk = {
  dialect: compatible.dialect,
  body(body, prompt, dropped) {
    const own = compatible.body?.(body, prompt, dropped) ?? body;
    return rename(own, "max_tokens", "max_completion_tokens");
  },
};
