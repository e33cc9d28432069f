/** The quirks of vLLM. */
import { isObject } from "../../json/mod.ts";
import { compatible, compatibleBody } from "./compatible.ts";
import type { Quirk } from "./quirk.ts";
import { wantsThinking } from "./thinking.ts";

/** At vLLM the model's chat template turns thinking on or off, by its argument `enable_thinking`. */
export const vllm: Quirk = {
  dialect: compatible.dialect,
  mayKnowOpenRouter: true,
  body(body, { reasoning }, dropped) {
    const others = compatibleBody(body, dropped);
    const isWanted = wantsThinking(reasoning);
    const own = isObject(others.chat_template_kwargs) ? others.chat_template_kwargs : {};
    if (isWanted === undefined || own.enable_thinking !== undefined) return others;
    return { ...others, chat_template_kwargs: { ...own, enable_thinking: isWanted } };
  },
};
