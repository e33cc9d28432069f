/** Writes the reasoning options. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import { type Effort, EFFORTS, type Prompt, type Reasoning } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";

/** Anthropic's minimum budget of thinking tokens. */
const MIN_BUDGET = 1024;

const PROTOCOL_EFFORTS: readonly Effort[] = ["low", "medium", "high", "xhigh", "max"];

/** Share of the answer's tokens, for models with a budget instead of an effort. */
const SHARES: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 0.02,
  low: 0.1,
  medium: 0.3,
  high: 0.6,
  xhigh: 0.9,
  max: 0.95,
};

/** `thinking` and `output_config.effort`, if there are any. */
export interface WrittenThinking {
  thinking?: JsonObject;
  effort?: Effort;
}

/** The target, and the limit of the answer. */
export interface ThinkingLimits {
  target: WriteTarget;
  /** `max_tokens` as written. */
  maxTokens: number;
}

/** True if `thinking` enables thinking. */
export function isThinking(thinking: JsonObject | undefined): boolean {
  return thinking?.type === "enabled" || thinking?.type === "adaptive";
}

/** Writes the reasoning options, and names those that the model does not have. */
export function writeThinking(prompt: Prompt, limits: ThinkingLimits): WrittenThinking {
  if (prompt.reasoning === undefined || limits.target.row.reasoning === undefined) return {};
  return prompt.protocol === "messages"
    ? writeOwn(prompt.reasoning, { ...limits, prompt })
    : writeAsked(prompt.reasoning, { ...limits, prompt });
}

type Context = ThinkingLimits & { prompt: Prompt };

/** Clients of this protocol set the mode themselves. */
function writeOwn(reasoning: Reasoning, context: Context): WrittenThinking {
  const { mode, display, effort } = reasoning;
  const { type, display: otherDisplay, ...others } = ownMembers(reasoning);
  const wireDisplay = display === "full" ? "summarized" : display ?? otherDisplay;
  const members = { ...others, ...(wireDisplay !== undefined && { display: wireDisplay }) };
  const depth = effort === undefined ? {} : writeEffort(effort, context);
  switch (mode) {
    case "manual":
      return { ...depth, ...budget(reasoning.budgetTokens ?? MIN_BUDGET, { ...context, members }) };
    case "adaptive":
      return { ...depth, thinking: { ...members, type: "adaptive" } };
    case "off":
      return { ...depth, ...(type === undefined ? switchOff(context, others) : { thinking: { ...members, type } }) };
    case undefined:
      return depth;
  }
}

/** Clients of other protocols set a depth only; the mode depends on the model. */
function writeAsked(reasoning: Reasoning, context: Context): WrittenThinking {
  const { mode, effort, budgetTokens, display } = reasoning;
  const adaptive = context.target.row.reasoning?.modes.includes("adaptive") === true;
  if (mode === "off" || effort === "none") return switchOff(context);
  if (budgetTokens !== undefined && context.target.row.reasoning?.modes.includes("manual") === true) {
    return budget(budgetTokens, context);
  }
  if (budgetTokens !== undefined) context.target.dropped.add(PARAMETER_NAMES[context.prompt.protocol].budget);
  const wantsThinking = mode !== undefined || effort !== undefined;
  // A request for a summary alone still needs thinking to summarize.
  if (!wantsThinking && (!adaptive || display === undefined || display === "omitted")) return {};
  if (!adaptive) return budget(context.maxTokens * SHARES[effort ?? "medium"], { ...context, share: true });
  return {
    thinking: { type: "adaptive", display: showsReasoning(context.prompt) ? "summarized" : "omitted" },
    ...(effort !== undefined && writeEffort(effort, context)),
  };
}

/** Chat shows reasoning by default; responses shows it only if a summary is requested. */
function showsReasoning({ protocol, reasoning }: Prompt): boolean {
  const display = reasoning?.display;
  return display === undefined ? protocol === "chat" : display !== "omitted";
}

/** Disables thinking, or reduces it if the model cannot disable it. */
function switchOff(context: Context, members: JsonObject = {}): WrittenThinking {
  const { row, dropped } = context.target;
  if (row.reasoning?.mandatory !== true) return { thinking: { ...members, type: "disabled" } };
  dropped.add(PARAMETER_NAMES[context.prompt.protocol].reasoning);
  const effort = nearest("low", row.reasoning.efforts);
  return effort === undefined ? {} : { effort };
}

/** Writes a budget between Anthropic's minimum and `max_tokens`. Without room for one, the model does not think. */
function budget(
  tokens: number,
  { target, prompt, maxTokens, share, members = {} }: Context & { share?: boolean; members?: JsonObject },
): WrittenThinking {
  const { dropped } = target;
  if (maxTokens <= MIN_BUDGET) {
    const byEffort = share === true && prompt.reasoning?.effort !== undefined;
    dropped.add(PARAMETER_NAMES[prompt.protocol][byEffort ? "effort" : "reasoning"]);
    return {};
  }
  const fitted = Math.min(Math.max(Math.floor(tokens), MIN_BUDGET), maxTokens - 1);
  if (share !== true && fitted !== tokens) dropped.add(PARAMETER_NAMES[prompt.protocol].budget);
  return { thinking: { ...members, type: "enabled", budget_tokens: fitted } };
}

function writeEffort(effort: Effort, { target, prompt }: Context): WrittenThinking {
  const supported = nearest(effort, target.row.reasoning?.efforts ?? []);
  if (supported !== effort) target.dropped.add(PARAMETER_NAMES[prompt.protocol].effort);
  return supported === undefined ? {} : { effort: supported };
}

/** Returns the supported effort nearest to the wanted one; of two, the greater. */
function nearest(requested: Effort, supported: readonly Effort[]): Effort | undefined {
  const distance = (effort: Effort) => Math.abs(EFFORTS.indexOf(effort) - EFFORTS.indexOf(requested));
  return PROTOCOL_EFFORTS.filter((effort) => supported.includes(effort))
    .toSorted((a, b) => distance(a) - distance(b) || EFFORTS.indexOf(b) - EFFORTS.indexOf(a))[0];
}
