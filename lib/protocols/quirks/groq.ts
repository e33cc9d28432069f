/** Groq. Its answers have `reasoning`, and usage in `x_groq` too; both are read everywhere. */
import { compatible, compatibleBody } from "./compatible.ts";
import type { Quirk } from "./quirk.ts";
import { wantsThinking } from "./thinking.ts";

/** By default some of its models think aloud inside `<think>` tags in their text. */
export const groq: Quirk = {
  dialect: compatible.dialect,
  body(body, prompt, dropped) {
    const wanted = typeof body.reasoning_effort === "string" && wantsThinking(prompt.reasoning) === true;
    const others = compatibleBody(body, dropped);
    // `reasoning_format` is refused by models that do not think, and beside `include_reasoning`.
    if (!wanted || others.reasoning_format !== undefined || others.include_reasoning !== undefined) return others;
    return { ...others, reasoning_format: "parsed" };
  },
};
