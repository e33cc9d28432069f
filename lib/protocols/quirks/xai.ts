/** The quirks of xAI. */
import { compatible, compatibleBody } from "./compatible.ts";
import { type Quirk, rename } from "./quirk.ts";

/** xAI knows the newer `max_completion_tokens`, but no `developer` role. */
export const xai: Quirk = {
  dialect: compatible.dialect,
  body: (body, _prompt, dropped) => rename(compatibleBody(body, dropped), "max_tokens", "max_completion_tokens"),
};
