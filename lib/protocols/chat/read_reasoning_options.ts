/**
 * Reads the reasoning options of a chat request: `reasoning_effort`, the `reasoning` object and `include_reasoning`.
 */
import { type Effort, EFFORTS, type Reasoning } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { booleanOf, numberOf, objectOf, present, stringOf } from "../members.ts";
import { unknownIn } from "./members.ts";

const OPTIONS = new Set(["effort", "max_tokens", "enabled", "exclude"]);

/**
 * Reads the reasoning options; `undefined` if there are none.
 * @throws {GatewayError} `invalid`, for options that contradict each other
 */
export function readReasoningOptions(body: JsonObject): Reasoning | undefined {
  const { reasoning: wishes, reasoning_effort: depth, include_reasoning: includeReasoning } = body;
  if (wishes === undefined && depth === undefined && includeReasoning === undefined) return undefined;
  const options = objectOf(wishes) ?? {};
  const effort = readEffort(body, options);
  const budgetTokens = numberOf(options.max_tokens);
  const enabled = booleanOf(options.enabled);
  if (effort !== undefined && budgetTokens !== undefined) {
    throw contradiction("reasoning.max_tokens", "a token budget and an effort exclude each other");
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
    ...unknownIn(options, OPTIONS),
  };
  return Object.keys(reasoning).length === 0 ? undefined : reasoning;
}

/** An effort alone sets no mode. Enabled without an effort or a budget means adaptive. */
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
  const short = effortOf(body.reasoning_effort);
  const long = effortOf(options.effort);
  if (short !== undefined && long !== undefined && short !== long) {
    throw contradiction("reasoning_effort", `it is "${short}", but reasoning.effort is "${long}"`);
  }
  return short ?? long;
}

function effortOf(value: Json | undefined): Effort | undefined {
  return EFFORTS.find((effort) => effort === value);
}

/** The kind of summary stays an unknown member; whether there is one is common to all protocols. */
function readDisplay(body: JsonObject, options: JsonObject): Reasoning["display"] {
  if (options.exclude === true || body.include_reasoning === false) return "omitted";
  return stringOf(options.summary) === undefined ? undefined : "summarized";
}

function contradiction(param: string, what: string): GatewayError {
  return new GatewayError("invalid", `Cannot use ${param}: ${what}`, { param });
}
