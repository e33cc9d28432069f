import type { Effort } from "./types.ts";

/** Efforts by budget: each is used below its number of tokens. */
const BUDGETS: readonly [below: number, effort: Effort][] = [[2_048, "low"], [8_192, "medium"], [24_576, "high"]];

/** Returns the effort that corresponds to a budget of thinking tokens. */
export function effortOfBudget(tokens: number): Effort {
  return BUDGETS.find(([below]) => tokens < below)?.[1] ?? "xhigh";
}
