/** The quirks of Groq. */
import { compatible, compatibleBody } from "./compatible.ts";
import type { Quirk } from "./quirk.ts";
import { wantsThinking } from "./thinking.ts";

/**
 * Some of Groq's models write reasoning into the text, in `<think>` tags, unless the request has `reasoning_format`.
 */
export const groq: Quirk = {
  dialect: compatible.dialect,
  body(body, prompt, dropped) {
    const isWanted = typeof body.reasoning_effort === "string" && wantsThinking(prompt.reasoning) === true;
    const others = compatibleBody(body, dropped);
    // Models without reasoning refuse `reasoning_format`; so does Groq itself beside `include_reasoning`.
    if (!isWanted || others.reasoning_format !== undefined || others.include_reasoning !== undefined) return others;
    return { ...others, reasoning_format: "parsed" };
  },
};
