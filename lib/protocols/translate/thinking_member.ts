/**
 * Reads `thinking` of a chat request, which has the form of the messages protocol: Anthropic's own chat endpoint,
 * DeepSeek, Kimi and GLM have it. Chat upstreams get the member unchanged; others get the reasoning options.
 */
import type { UnsupportedParameters } from "../canonical/unsupported_parameters.ts";
import type { Prompt, Reasoning } from "../canonical/types.ts";
import { isObject, type JsonObject } from "../../json/mod.ts";
import { numberOf } from "../members.ts";
import type { AdaptTarget } from "../upstream_codec.ts";

/** Types of `thinking`, and whether they ask for reasoning. */
const WANTED: ReadonlyMap<unknown, boolean> = new Map([["enabled", true], ["adaptive", true], ["disabled", false]]);

const MEMBERS = new Set(["type", "budget_tokens", "display"]);

/**
 * Moves `thinking` to the reasoning options for a target that has none of that name. Other reasoning options of the
 * request take precedence. A `thinking` of an unknown type stays, and any `thinking` for a model that does not reason.
 */
export function readThinkingMember(
  prompt: Prompt,
  { protocol, row, dropped }: Pick<AdaptTarget, "protocol" | "row" | "dropped">,
): Prompt {
  const { unknownMembers, reasoning = {} } = prompt;
  if (unknownMembers?.from !== "chat" || protocol === "chat" || row.reasoning === undefined) return prompt;
  const { thinking, ...members } = unknownMembers.members;
  if (!isObject(thinking)) return prompt;
  const isWanted = WANTED.get(thinking.type);
  if (isWanted === undefined) return prompt;
  for (const name of Object.keys(thinking)) {
    if (!MEMBERS.has(name)) dropped.add(`thinking.${name}`);
  }
  const { display } = thinking;
  const options: Reasoning = {
    ...(display === "summarized" || display === "omitted" ? { display } : {}),
    ...readDepth(reasoning, {
      isWanted,
      budgetTokens: isWanted ? readBudget(thinking) : undefined,
      dropped,
    }),
    ...reasoning,
  };
  return { ...prompt, reasoning: options, unknownMembers: { from: "chat", members } };
}

/** Returns mode and budget; nothing if other options have set them, which is reported if they differ. */
function readDepth(
  { mode, effort, budgetTokens: otherBudget }: Reasoning,
  { isWanted, budgetTokens, dropped }: {
    isWanted: boolean;
    budgetTokens: number | undefined;
    dropped: UnsupportedParameters;
  },
): Reasoning {
  if (mode === undefined && effort === undefined) {
    if (!isWanted) return { mode: "off" };
    return budgetTokens === undefined ? { mode: "adaptive" } : { mode: "manual", budgetTokens };
  }
  const wasWanted = mode !== "off" && effort !== "none";
  if (isWanted !== wasWanted) dropped.add("thinking");
  else if (budgetTokens !== undefined && budgetTokens !== otherBudget) dropped.add("thinking.budget_tokens");
  return {};
}

/** Returns the budget. The schema does not check it, because only some upstreams have it. */
function readBudget({ budget_tokens }: JsonObject): number | undefined {
  const tokens = numberOf(budget_tokens);
  return tokens !== undefined && Number.isSafeInteger(tokens) && tokens > 0 ? tokens : undefined;
}
