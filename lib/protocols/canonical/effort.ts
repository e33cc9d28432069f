/** Converts the client's reasoning options, an effort or a budget, to an effort that the model supports. */
import type { ParameterNames } from "./parameter_names.ts";
import { type Effort, EFFORTS, type Reasoning } from "./types.ts";
import type { UnsupportedParameters } from "./unsupported_parameters.ts";

/** Efforts by budget: each is that of budgets below its number of tokens. */
const BUDGETS: readonly [below: number, effort: Effort][] = [[2_048, "low"], [8_192, "medium"], [24_576, "high"]];

/** The share of the answer's tokens that an effort allows for thinking, for models with a budget but no efforts. */
export const BUDGET_SHARES: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 0.02,
  low: 0.1,
  medium: 0.3,
  high: 0.6,
  xhigh: 0.9,
  max: 0.95,
};

/** Returns a value of a request if it is an effort. */
export function effortOf(value: unknown): Effort | undefined {
  return EFFORTS.find((effort) => effort === value);
}

/** Returns the effort that corresponds to a budget of thinking tokens. */
export function effortOfBudget(tokens: number): Effort {
  return BUDGETS.find(([below]) => tokens < below)?.[1] ?? "xhigh";
}

/** Returns the effort to send; undefined leaves it to the model. Adds what the model does not support to `dropped`. */
export function supportedEffort(
  { mode, effort, budgetTokens }: Reasoning,
  { efforts, names, dropped }: {
    /** Efforts of the model; absent: it does not reason. */
    efforts: readonly Effort[] | undefined;
    names: Readonly<ParameterNames>;
    dropped: UnsupportedParameters;
  },
): Effort | undefined {
  // Some models do not reason unless they get an effort. OpenRouter, too, takes `enabled` for the effort "medium".
  const enabled = mode === "adaptive" && efforts?.includes("medium") ? "medium" : undefined;
  const requested = effort ?? (budgetTokens === undefined ? enabled : effortOfBudget(budgetTokens));
  const wanted = mode === "off" ? "none" : requested;
  if (wanted === undefined) return undefined;
  if (efforts === undefined) {
    // For a model without reasoning, the effort "none" changes nothing.
    if (wanted !== "none") dropped.add(names.effort);
    return undefined;
  }
  const supported = nearestEffort(wanted, efforts);
  if (wanted === "none" && supported !== "none") dropped.add(names.off);
  else if (effort !== undefined && supported !== wanted) dropped.add(names.effort);
  return supported;
}

/** Returns the highest effort of the model up to the wanted one, else its lowest. `none` is returned only if wanted. */
function nearestEffort(wanted: Effort, modelEfforts: readonly Effort[]): Effort | undefined {
  if (wanted === "none" && modelEfforts.includes(wanted)) return wanted;
  const supported = EFFORTS.filter((effort) => effort !== "none" && modelEfforts.includes(effort));
  return supported.findLast((effort) => EFFORTS.indexOf(effort) <= EFFORTS.indexOf(wanted)) ?? supported[0];
}
