/** Replaces ids of tool calls that an upstream would refuse, the same way in the call and in its result. */
import type { ContentBlock, Prompt } from "../canonical/types.ts";
import type { TextRule } from "../upstream_codec.ts";
import { hashText, isLegal } from "./legal_names.ts";
import { mapPrompt } from "./map_blocks.ts";

const PREFIX = "call_";
/** About 142 bits. */
const HASH_LENGTH = 24;

/** Makes every call id legal. The new id is derived from the old one, so nothing has to be remembered. */
export function legalizeCallIds(prompt: Prompt, rule: TextRule): Prompt {
  const legalize = (block: ContentBlock): ContentBlock => {
    switch (block.type) {
      case "tool_call":
        return { ...block, id: legalCallId(block.id, rule) };
      case "tool_result":
        return { ...block, callId: legalCallId(block.callId, rule) };
      default:
        return block;
    }
  };
  return mapPrompt(prompt, legalize);
}

/** Returns the id itself if it is legal, else one made of its hash. */
export function legalCallId(id: string, rule: TextRule): string {
  if (isLegal(id, rule)) return id;
  if (rule.exact === true) return hashText(id, rule.max);
  const prefix = isLegal(PREFIX, { ...rule, exact: false }) && rule.max > 2 * PREFIX.length ? PREFIX : "";
  return prefix + hashText(id, Math.min(HASH_LENGTH, rule.max - prefix.length));
}
