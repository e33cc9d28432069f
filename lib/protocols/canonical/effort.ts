/** Reasoning depth for models that have efforts, whatever the client asked for. */
import type { ParameterNames } from "./parameter_names.ts";
import { type Effort, EFFORTS, type Reasoning } from "./types.ts";
import type { UnsupportedParameters } from "./unsupported_parameters.ts";

/** Efforts by budget: each is used below its number of tokens. */
const BUDGETS: readonly [below: number, effort: Effort][] = [[2_048, "low"], [8_192, "medium"], [24_576, "high"]];

/** Returns the effort that corresponds to a budget of thinking tokens. */
export function effortOfBudget(tokens: number): Effort {
  return BUDGETS.find(([below]) => tokens < below)?.[1] ?? "xhigh";
}

/** Returns the effort to send, and names a loss; undefined if the model decides, as it does by default. */
export function supportedEffort(
  { mode, effort, budgetTokens }: Reasoning,
  { efforts, names, dropped }: {
    /** Efforts of the model; absent: it does not reason. */
    efforts: readonly Effort[] | undefined;
    names: Readonly<ParameterNames>;
    dropped: UnsupportedParameters;
  },
): Effort | undefined {
  const requested = effort ?? (budgetTokens === undefined ? undefined : effortOfBudget(budgetTokens));
  const target = mode === "off" ? "none" : requested;
  if (target === undefined) return undefined;
  if (efforts === undefined) {
    // For a model without reasoning, the effort "none" changes nothing.
    if (target !== "none") dropped.add(names.effort);
    return undefined;
  }
  const supported = nearestEffort(target, efforts);
  if (target === "none" && supported !== "none") dropped.add(names.off);
  else if (effort !== undefined && supported !== target) dropped.add(names.effort);
  return supported;
}

/** Returns the highest supported effort up to the wanted one, else the lowest. `none` is used only if it is wanted. */
function nearestEffort(requested: Effort, efforts: readonly Effort[]): Effort | undefined {
  if (requested === "none" && efforts.includes(requested)) return requested;
  const known = EFFORTS.filter((effort) => effort !== "none" && efforts.includes(effort));
  return known.findLast((effort) => EFFORTS.indexOf(effort) <= EFFORTS.indexOf(requested)) ?? known[0];
}
