/** OpenAI itself: requests are written in its words already. */
import type { Quirk } from "./quirk.ts";

/** Nothing to mend: `max_completion_tokens` and the `developer` role are OpenAI's own. */
export const openai: Quirk = {};
