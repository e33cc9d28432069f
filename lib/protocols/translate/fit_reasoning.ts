/** Reasoning of earlier turns goes back to the model that did it, and to no other. */
import type { ContentBlock, Prompt } from "../canonical/types.ts";
import { mapPrompt } from "./map_blocks.ts";
import { type AdaptTarget, PARAMETER_NAMES } from "./adapt_target.ts";

/**
 * Leaves out reasoning that the target cannot read: signed by another issuer, or unsigned where it is not wanted. What is
 * signed stays whole, also without text; nothing changes its place. What says nothing goes unnamed.
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
 * Switches reasoning off for this request where Anthropic's manual thinking would refuse it: a tool is forced, or the last
 * turn of the assistant calls tools and does not begin with its reasoning. Adaptive thinking takes both.
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

/** True where the request is for thinking, and the model's thinking takes a budget. */
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
