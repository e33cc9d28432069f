/**
 * Reads the reasoning options of a chat request: `reasoning_effort`, the `reasoning` object and `include_reasoning`.
 */
import { effortOf } from "../canonical/effort.ts";
import type { Effort, Reasoning } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import { booleanOf, numberOf, objectOf, present, stringOf } from "../members.ts";
import { unknownIn } from "../canonical/unknown_members.ts";

const OPTION_MEMBERS = new Set(["effort", "max_tokens", "enabled", "exclude"]);

/**
 * Reads the reasoning options of a request with any of the three members. Returns undefined if all are null or empty.
 * @throws {GatewayError} `invalid`, for options that contradict each other
 */
export function readReasoningOptions(body: JsonObject): Reasoning | undefined {
  const options = objectOf(body.reasoning) ?? {};
  const effort = readEffort(body, options);
  const budgetTokens = numberOf(options.max_tokens);
  const enabled = booleanOf(options.enabled);
  if (effort !== undefined && budgetTokens !== undefined) {
    throw contradiction("reasoning.max_tokens", "a token budget and an effort cannot be combined");
  }
  if (enabled === false && (budgetTokens !== undefined || (effort !== undefined && effort !== "none"))) {
    throw contradiction("reasoning.enabled", "reasoning is disabled, but an effort or a budget is set");
  }
  if (enabled === true && effort === "none") {
    throw contradiction("reasoning.enabled", "reasoning is enabled, but its effort is none");
  }
  const reasoning: Reasoning = {
    ...present({
      mode: readMode({ effort, budgetTokens, enabled }),
      budgetTokens,
      effort,
      display: readDisplay(body, options),
    }),
    ...unknownIn("chat", options, OPTION_MEMBERS),
  };
  return Object.keys(reasoning).length === 0 ? undefined : reasoning;
}

/** Returns the mode. An effort alone sets none; `enabled` without an effort or a budget means adaptive. */
function readMode({ effort, budgetTokens, enabled }: {
  effort: Effort | undefined;
  budgetTokens: number | undefined;
  enabled: boolean | undefined;
}): Reasoning["mode"] {
  if (enabled === false || effort === "none") return "off";
  if (budgetTokens !== undefined) return "manual";
  return enabled === true && effort === undefined ? "adaptive" : undefined;
}

function readEffort(body: JsonObject, options: JsonObject): Effort | undefined {
  const flatEffort = effortOf(body.reasoning_effort);
  const nestedEffort = effortOf(options.effort);
  if (flatEffort !== undefined && nestedEffort !== undefined && flatEffort !== nestedEffort) {
    throw contradiction("reasoning_effort", `it is "${flatEffort}", but reasoning.effort is "${nestedEffort}"`);
  }
  return flatEffort ?? nestedEffort;
}

/** Returns how reasoning is shown. All protocols know whether there is a summary; its kind stays an unknown member. */
function readDisplay(body: JsonObject, options: JsonObject): Reasoning["display"] {
  if (options.exclude === true || body.include_reasoning === false) return "omitted";
  return stringOf(options.summary) === undefined ? undefined : "summarized";
}

function contradiction(param: string, what: string): GatewayError {
  return new GatewayError("invalid", `Cannot use ${param}: ${what}`, { param });
}
