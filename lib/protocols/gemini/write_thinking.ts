/** Writes how much to think. */
import { type Effort, EFFORTS, type Prompt, type Reasoning } from "../canonical/types.ts";
import type { Model } from "../../catalog/model.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { someOf } from "./members.ts";
import { NAMES } from "./parameter_names.ts";

type Can = NonNullable<Model["reasoning"]>;

/**
 * Tokens to think, by effort, for models that take a budget: the vendor's own table for its OpenAI-compatible endpoint,
 * https://ai.google.dev/gemini-api/docs/openai#thinking. What is deeper is the most that all of these models take.
 */
const BUDGETS: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 1_024,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
  xhigh: 24_576,
  max: 24_576,
};

/** The budget with which the model decides by itself. */
const DYNAMIC = -1;

const LEVELS: Readonly<Record<Exclude<Effort, "none">, string>> = {
  minimal: "MINIMAL",
  low: "LOW",
  medium: "MEDIUM",
  high: "HIGH",
  xhigh: "HIGH",
  max: "HIGH",
};

/**
 * The `thinkingConfig`: a budget or a level, never both, and whether to return the thoughts; `undefined` where the
 * client asked nothing or the model does not reason.
 */
export function writeThinking(prompt: Prompt, { row, dropped }: WriteTarget): JsonObject | undefined {
  const { reasoning } = prompt;
  if (reasoning === undefined || row.reasoning === undefined) return undefined;
  if (reasoning.mode === "off" || reasoning.effort === "none") {
    const { depth, isOff } = writeOff(row.reasoning);
    if (!isOff) dropped.add(reasoning.effort === "none" ? NAMES[prompt.protocol].effort : NAMES[prompt.protocol].off);
    return depth;
  }
  return someOf({
    ...writeDepth(reasoning, { prompt, can: row.reasoning, dropped }),
    includeThoughts: isShown(prompt, reasoning) ? true : undefined,
  });
}

/** No thinking where the model can do without, else as little as it can. */
function writeOff({ modes, efforts, mandatory }: Can): { depth: JsonObject; isOff: boolean } {
  if (modes.includes("manual") && mandatory !== true) return { depth: { thinkingBudget: BUDGETS.none }, isOff: true };
  const least = EFFORTS.find((effort) => effort !== "none" && efforts.includes(effort)) ?? "low";
  const depth = modes.includes("adaptive") ? { thinkingLevel: levelOf(least) } : { thinkingBudget: BUDGETS[least] };
  return { depth, isOff: false };
}

function writeDepth(
  { mode, budgetTokens, effort }: Reasoning,
  { prompt, can, dropped }: { prompt: Prompt; can: Can; dropped: WriteTarget["dropped"] },
): JsonObject {
  const { budget: budgetName, effort: effortName } = NAMES[prompt.protocol];
  if (budgetTokens !== undefined && can.modes.includes("manual")) {
    if (effort !== undefined) dropped.add(effortName);
    return { thinkingBudget: budgetTokens };
  }
  if (budgetTokens !== undefined) dropped.add(budgetName);
  if (effort !== undefined) {
    // Nothing here is deeper than high.
    if (effort === "xhigh" || effort === "max") dropped.add(effortName);
    return can.modes.includes("adaptive") ? { thinkingLevel: levelOf(effort) } : { thinkingBudget: BUDGETS[effort] };
  }
  // Models that take levels decide by themselves unless they are told otherwise.
  return mode === "adaptive" && !can.modes.includes("adaptive") ? { thinkingBudget: DYNAMIC } : {};
}

function levelOf(effort: Effort): string {
  return LEVELS[effort === "none" ? "minimal" : effort];
}

/** Whether the client may see the thoughts. In responses they are a summary, which has to be asked for. */
function isShown({ protocol }: Prompt, { display }: Reasoning): boolean {
  return protocol === "responses" ? display !== undefined && display !== "omitted" : display !== "omitted";
}
