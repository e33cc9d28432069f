/** Writes how much the model is to think, and how much of it to show. */
import { type Effort, EFFORTS, type Prompt, type Reasoning } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { parameterName } from "./parameter_names.ts";

/** The least budget of thinking tokens the vendor takes. */
const LEAST_BUDGET = 1024;

/** Efforts of the protocol's own. */
const WORDS: readonly Effort[] = ["low", "medium", "high", "xhigh", "max"];

/** Part of the answer's tokens to think with, for models that take a budget and no effort. */
const SHARES: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 0.02,
  low: 0.1,
  medium: 0.3,
  high: 0.6,
  xhigh: 0.9,
  max: 0.95,
};

/** `thinking` and `output_config.effort`, each absent where there is nothing to say. */
export interface WrittenThinking {
  thinking?: JsonObject;
  effort?: Effort;
}

/** What the depth depends on besides the prompt. */
export interface ThinkingLimits {
  target: WriteTarget;
  /** `max_tokens` as written. */
  maxTokens: number;
}

/** True for `thinking` that switches thinking on. */
export function isThinking(thinking: JsonObject | undefined): boolean {
  return thinking?.type === "enabled" || thinking?.type === "adaptive";
}

/** Writes what the client asked about reasoning. What the model cannot do about it is named as dropped. */
export function writeThinking(prompt: Prompt, limits: ThinkingLimits): WrittenThinking {
  if (prompt.reasoning === undefined || limits.target.row.reasoning === undefined) return {};
  return prompt.protocol === "messages"
    ? writeOwn(prompt.reasoning, { ...limits, prompt })
    : writeAsked(prompt.reasoning, { ...limits, prompt });
}

type Context = ThinkingLimits & { prompt: Prompt };

/** In this protocol the client says itself how the model is to think. */
function writeOwn(reasoning: Reasoning, context: Context): WrittenThinking {
  const { mode, display, effort } = reasoning;
  const { type, display: otherDisplay, ...others } = reasoning.unknownMembers?.from === "messages"
    ? reasoning.unknownMembers.members
    : {};
  const shown = display === "full" ? "summarized" : display ?? otherDisplay;
  const members = { ...others, ...(shown !== undefined && { display: shown }) };
  const depth = effort === undefined ? {} : writeEffort(effort, context);
  switch (mode) {
    case "manual":
      return { ...depth, ...budget(reasoning.budgetTokens ?? LEAST_BUDGET, { ...context, members }) };
    case "adaptive":
      return { ...depth, thinking: { ...members, type: "adaptive" } };
    case "off":
      return { ...depth, ...(type === undefined ? switchOff(context, others) : { thinking: { ...members, type } }) };
    case undefined:
      return depth;
  }
}

/** In the other protocols the client says only how deep; the way there depends on the model. */
function writeAsked(reasoning: Reasoning, context: Context): WrittenThinking {
  const { mode, effort, budgetTokens, display } = reasoning;
  const adaptive = context.target.row.reasoning?.modes.includes("adaptive") === true;
  if (mode === "off" || effort === "none") return switchOff(context);
  if (budgetTokens !== undefined && context.target.row.reasoning?.modes.includes("manual") === true) {
    return budget(budgetTokens, context);
  }
  if (budgetTokens !== undefined) context.target.dropped.add(parameterName("budget", context.prompt.protocol));
  const wanted = mode !== undefined || effort !== undefined;
  // A summary asked for and nothing else still asks for something to summarize.
  if (!wanted && (!adaptive || display === undefined || display === "omitted")) return {};
  if (!adaptive) return budget(context.maxTokens * SHARES[effort ?? "medium"], { ...context, share: true });
  return {
    thinking: { type: "adaptive", display: showsReasoning(context.prompt) ? "summarized" : "omitted" },
    ...(effort !== undefined && writeEffort(effort, context)),
  };
}

/** Chat shows reasoning unless told otherwise; responses shows none unless it is asked for a summary. */
function showsReasoning({ protocol, reasoning }: Prompt): boolean {
  const display = reasoning?.display;
  return display === undefined ? protocol === "chat" : display !== "omitted";
}

/** Switches thinking off. A model that cannot is asked for as little as it can. */
function switchOff(context: Context, members: JsonObject = {}): WrittenThinking {
  const { row, dropped } = context.target;
  if (row.reasoning?.mandatory !== true) return { thinking: { ...members, type: "disabled" } };
  dropped.add(parameterName("thinking", context.prompt.protocol));
  const effort = nearest("low", row.reasoning.efforts);
  return effort === undefined ? {} : { effort };
}

/**
 * A budget of thinking tokens: at least the vendor's least, less than `max_tokens`. Where there is no room for one, the
 * model does not think.
 */
function budget(
  tokens: number,
  { target, prompt, maxTokens, share, members = {} }: Context & { share?: boolean; members?: JsonObject },
): WrittenThinking {
  const { dropped } = target;
  if (maxTokens <= LEAST_BUDGET) {
    const byEffort = share === true && prompt.reasoning?.effort !== undefined;
    dropped.add(parameterName(byEffort ? "effort" : "thinking", prompt.protocol));
    return {};
  }
  const fitted = Math.min(Math.max(Math.floor(tokens), LEAST_BUDGET), maxTokens - 1);
  if (share !== true && fitted !== tokens) dropped.add(parameterName("budget", prompt.protocol));
  return { thinking: { ...members, type: "enabled", budget_tokens: fitted } };
}

function writeEffort(effort: Effort, { target, prompt }: Context): WrittenThinking {
  const supported = nearest(effort, target.row.reasoning?.efforts ?? []);
  if (supported !== effort) target.dropped.add(parameterName("effort", prompt.protocol));
  return supported === undefined ? {} : { effort: supported };
}

/** The effort nearest to the one wanted that both the protocol and the model know; of two, the greater. */
function nearest(wanted: Effort, supported: readonly Effort[]): Effort | undefined {
  const distance = (effort: Effort) => Math.abs(EFFORTS.indexOf(effort) - EFFORTS.indexOf(wanted));
  return WORDS.filter((effort) => supported.includes(effort))
    .toSorted((a, b) => distance(a) - distance(b) || EFFORTS.indexOf(b) - EFFORTS.indexOf(a))[0];
}
