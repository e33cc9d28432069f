/** Writes the reasoning options of a messages request. */
import { BUDGET_SHARES } from "../canonical/effort.ts";
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import { type Effort, EFFORTS, type Prompt, type Reasoning } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";

/** Anthropic's minimum budget of thinking tokens. */
const MIN_BUDGET = 1024;

const PROTOCOL_EFFORTS: readonly Effort[] = ["low", "medium", "high", "xhigh", "max"];

/** The members `thinking` and `output_config.effort`, as far as they are written. */
interface WrittenThinking {
  thinking?: JsonObject;
  effort?: Effort;
}

interface Context {
  prompt: Prompt;
  target: WriteTarget;
  /** `max_tokens` as written. */
  maxTokens: number;
}

/** True if `thinking` enables thinking. */
export function isThinking(thinking: JsonObject | undefined): boolean {
  return thinking?.type === "enabled" || thinking?.type === "adaptive";
}

/** Writes the reasoning options. Those that the model does not have are added to `dropped`. */
export function writeThinking(context: Context): WrittenThinking {
  const { prompt: { reasoning, protocol }, target: { row } } = context;
  if (reasoning === undefined || row.reasoning === undefined) return {};
  return protocol === "messages" ? writeOwnOptions(reasoning, context) : writeTranslatedOptions(reasoning, context);
}

/** Writes the options of a client of this protocol, which sets the mode itself. */
function writeOwnOptions(reasoning: Reasoning, context: Context): WrittenThinking {
  const { mode, display, effort } = reasoning;
  const { type, display: otherDisplay, ...others } = ownMembers(reasoning);
  const shown = display === "full" ? "summarized" : display ?? otherDisplay;
  const members = { ...others, ...(shown !== undefined && { display: shown }) };
  const effortMember = effort === undefined ? {} : writeEffort(effort, context);
  switch (mode) {
    case "manual":
      return { ...effortMember, ...writeBudget(reasoning.budgetTokens ?? MIN_BUDGET, { ...context, members }) };
    case "adaptive":
      return { ...effortMember, thinking: { ...members, type: "adaptive" } };
    case "off":
      return {
        ...effortMember,
        ...(type === undefined ? switchOff(context, others) : { thinking: { ...members, type } }),
      };
    case undefined:
      return effortMember;
  }
}

/** Writes the options of a client of another protocol, which sets only a depth. The mode depends on the model. */
function writeTranslatedOptions(reasoning: Reasoning, context: Context): WrittenThinking {
  const { mode, effort, budgetTokens, display } = reasoning;
  const isAdaptive = context.target.row.reasoning?.modes.includes("adaptive") === true;
  if (mode === "off" || effort === "none") return switchOff(context);
  if (budgetTokens !== undefined && context.target.row.reasoning?.modes.includes("manual") === true) {
    return writeBudget(budgetTokens, context);
  }
  if (budgetTokens !== undefined) context.target.dropped.add(PARAMETER_NAMES[context.prompt.protocol].budget);
  const isRequested = mode !== undefined || effort !== undefined;
  // A client that only asks for a summary needs thinking, too.
  if (!isRequested && (!isAdaptive || display === undefined || display === "omitted")) return {};
  if (!isAdaptive) {
    return writeBudget(context.maxTokens * BUDGET_SHARES[effort ?? "medium"], { ...context, share: true });
  }
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

/** Disables thinking; if the model always thinks, reduces it as far as possible. */
function switchOff(context: Context, members: JsonObject = {}): WrittenThinking {
  const { row, dropped } = context.target;
  if (row.reasoning?.mandatory !== true) return { thinking: { ...members, type: "disabled" } };
  dropped.add(PARAMETER_NAMES[context.prompt.protocol].reasoning);
  const effort = nearest("low", row.reasoning.efforts);
  return effort === undefined ? {} : { effort };
}

/**
 * Writes a budget between Anthropic's minimum and `max_tokens`. If `max_tokens` is too low, the model does not think.
 */
function writeBudget(
  tokens: number,
  { target, prompt, maxTokens, share, members = {} }: Context & { share?: boolean; members?: JsonObject },
): WrittenThinking {
  const { dropped } = target;
  if (maxTokens <= MIN_BUDGET) {
    const isByEffort = share === true && prompt.reasoning?.effort !== undefined;
    dropped.add(PARAMETER_NAMES[prompt.protocol][isByEffort ? "effort" : "reasoning"]);
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

/** Returns the supported effort that is nearest to the wanted one; the higher one of two. */
function nearest(wanted: Effort, supported: readonly Effort[]): Effort | undefined {
  const distance = (effort: Effort) => Math.abs(EFFORTS.indexOf(effort) - EFFORTS.indexOf(wanted));
  return PROTOCOL_EFFORTS.filter((effort) => supported.includes(effort))
    .toSorted((a, b) => distance(a) - distance(b) || EFFORTS.indexOf(b) - EFFORTS.indexOf(a))[0];
}
