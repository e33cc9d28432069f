/** Writes the reasoning options of a Gemini request as `thinkingConfig`. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import { type Effort, EFFORTS, type Prompt, type Reasoning } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { Model } from "../../catalog/model.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { someOf } from "../members.ts";

type SupportedReasoning = NonNullable<Model["reasoning"]>;

/**
 * Budgets by effort, from Google's table for its OpenAI-compatible endpoint,
 * https://ai.google.dev/gemini-api/docs/openai#thinking. Higher efforts get the highest budget that all of these
 * models accept.
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

/** The budget that leaves the decision to the model. */
const DYNAMIC_BUDGET = -1;

const LEVELS: Readonly<Record<Exclude<Effort, "none">, string>> = {
  minimal: "MINIMAL",
  low: "LOW",
  medium: "MEDIUM",
  high: "HIGH",
  xhigh: "HIGH",
  max: "HIGH",
};

/**
 * Writes `thinkingConfig`: a budget or a level, never both, and whether to return thoughts. Returns undefined without
 * reasoning options, or for a model without reasoning.
 */
export function writeThinking(prompt: Prompt, { row, dropped }: WriteTarget): JsonObject | undefined {
  const { reasoning } = prompt;
  if (reasoning === undefined || row.reasoning === undefined) return undefined;
  if (reasoning.mode === "off" || reasoning.effort === "none") {
    const { depth, isOff } = writeOff(row.reasoning);
    if (!isOff) {
      dropped.add(
        reasoning.effort === "none"
          ? PARAMETER_NAMES[prompt.protocol].effort
          : PARAMETER_NAMES[prompt.protocol].reasoning,
      );
    }
    return depth;
  }
  return someOf({
    ...writeDepth(reasoning, { prompt, supported: row.reasoning, dropped }),
    includeThoughts: isShown(prompt, reasoning) ? true : undefined,
    ...ownMembers(reasoning),
  });
}

/** Disables thinking, or reduces it as far as the model can. */
function writeOff({ modes, efforts, mandatory }: SupportedReasoning): { depth: JsonObject; isOff: boolean } {
  if (modes.includes("manual") && mandatory !== true) return { depth: { thinkingBudget: BUDGETS.none }, isOff: true };
  const lowest = EFFORTS.find((effort) => effort !== "none" && efforts.includes(effort)) ?? "low";
  const depth = modes.includes("adaptive") ? { thinkingLevel: levelOf(lowest) } : { thinkingBudget: BUDGETS[lowest] };
  return { depth, isOff: false };
}

function writeDepth(
  { mode, budgetTokens, effort }: Reasoning,
  { prompt, supported, dropped }: { prompt: Prompt; supported: SupportedReasoning; dropped: WriteTarget["dropped"] },
): JsonObject {
  const { budget: budgetName, effort: effortName } = PARAMETER_NAMES[prompt.protocol];
  if (budgetTokens !== undefined && supported.modes.includes("manual")) {
    if (effort !== undefined) dropped.add(effortName);
    return { thinkingBudget: budgetTokens };
  }
  if (budgetTokens !== undefined) dropped.add(budgetName);
  if (effort !== undefined) {
    // `high` is the highest level.
    if (effort === "xhigh" || effort === "max") dropped.add(effortName);
    return supported.modes.includes("adaptive")
      ? { thinkingLevel: levelOf(effort) }
      : { thinkingBudget: BUDGETS[effort] };
  }
  // By default models with levels decide themselves.
  return mode === "adaptive" && !supported.modes.includes("adaptive") ? { thinkingBudget: DYNAMIC_BUDGET } : {};
}

function levelOf(effort: Effort): string {
  return LEVELS[effort === "none" ? "minimal" : effort];
}

/** True if the client gets thoughts. Clients of responses and Gemini must request them, as summaries. */
function isShown({ protocol }: Prompt, { display }: Reasoning): boolean {
  return protocol === "responses" || protocol === "gemini"
    ? display !== undefined && display !== "omitted"
    : display !== "omitted";
}
