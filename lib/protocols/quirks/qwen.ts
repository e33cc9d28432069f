/** The quirks of Qwen. */
import { compatible, compatibleBody } from "./compatible.ts";
import { omit, type Quirk } from "./quirk.ts";
import { EFFORT_MEMBERS, wantsThinking } from "./thinking.ts";

/** Qwen, at Alibaba's Model Studio, has `enable_thinking` and `thinking_budget` at the top of the request. */
export const qwen: Quirk = {
  dialect: compatible.dialect,
  body(body, { reasoning }, dropped) {
    const others = omit(compatibleBody(body, dropped), EFFORT_MEMBERS);
    const isWanted = wantsThinking(reasoning);
    if (isWanted === undefined || others.enable_thinking !== undefined) return others;
    const budget = isWanted ? reasoning?.budgetTokens : undefined;
    return { ...others, enable_thinking: isWanted, ...(budget !== undefined && { thinking_budget: budget }) };
  },
};
