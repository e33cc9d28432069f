/** xAI. Its reasoning is counted outside the completion, which the reader of usage knows. */
import { compatible } from "./compatible.ts";
import { type Quirk, rename } from "./quirk.ts";

/** xAI follows OpenAI's newer words for the length of the answer and knows no `developer`. */
export const xai: Quirk = {
  dialect: compatible.dialect,
  body(body, prompt, dropped) {
    const own = compatible.body?.(body, prompt, dropped) ?? body;
    return rename(own, "max_tokens", "max_completion_tokens");
  },
};
