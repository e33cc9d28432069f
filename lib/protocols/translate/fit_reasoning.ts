/** Returns the reasoning of earlier messages to the model that wrote it, and to no other. */
import type { ContentBlock, Prompt } from "../canonical/types.ts";
import { mapPrompt } from "./map_blocks.ts";
import { type AdaptTarget, PARAMETER_NAMES } from "./adapt_target.ts";

/**
 * Drops reasoning that the target cannot read: signed by another issuer, or unsigned if the target does not take it.
 * Empty reasoning is dropped without being named.
 */
export function dropUnreadableReasoning(prompt: Prompt, { issuer, dialect, dropped }: AdaptTarget): Prompt {
  const names = PARAMETER_NAMES[prompt.protocol];
  const keep = (block: ContentBlock): ContentBlock | ContentBlock[] => {
    if (block.type !== "reasoning") return block;
    const { text, signature } = block;
    if (signature === undefined ? text !== "" && dialect.unsignedReasoning : signature.issuer === issuer) {
      return block;
    }
    if (text !== "" || signature !== undefined) dropped.add(signature === undefined ? names.unsigned : names.signed);
    return [];
  };
  return mapPrompt(prompt, keep);
}

/**
 * Disables reasoning for a request that Anthropic's manual thinking would refuse: a forced tool, or a last assistant
 * message with tool calls that does not begin with its reasoning. Adaptive thinking accepts both.
 */
export function fitReasoning(prompt: Prompt, target: AdaptTarget): Prompt {
  const { reasoning, toolChoice, protocol } = prompt;
  if (target.protocol !== "messages" || !isManual(prompt, target)) return prompt;
  const forced = toolChoice?.type === "tool" || toolChoice?.type === "required" ||
    (toolChoice?.type === "allowed" && toolChoice.mode === "required");
  if (!forced && !hasBareCall(prompt)) return prompt;
  const byEffort = reasoning?.mode === undefined;
  target.dropped.add(byEffort ? PARAMETER_NAMES[protocol].effort : PARAMETER_NAMES[protocol].reasoning);
  return { ...prompt, reasoning: { mode: "off" } };
}

/** True if the request asks for thinking and the model's thinking takes a budget. */
function isManual({ reasoning }: Prompt, { row }: AdaptTarget): boolean {
  if (reasoning === undefined || reasoning.mode === "off") return false;
  if (reasoning.mode === "manual") return true;
  const asked = reasoning.mode === "adaptive" || (reasoning.effort !== undefined && reasoning.effort !== "none");
  return asked && row.reasoning !== undefined && !row.reasoning.modes.includes("adaptive");
}

function hasBareCall({ messages }: Prompt): boolean {
  const last = messages.findLast(({ role }) => role === "assistant");
  return last !== undefined && last.blocks[0]?.type !== "reasoning" &&
    last.blocks.some(({ type }) => type === "tool_call");
}
