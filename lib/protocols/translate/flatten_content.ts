/** Replaces or drops blocks that the target does not support. */
import type { ContentBlock, Message, Prompt } from "../canonical/types.ts";
import { flattenVendorSpecific } from "./flatten_vendor_specific.ts";
import { mapPrompt, withMessages } from "./map_blocks.ts";
import type { AdaptTarget } from "./adapt_target.ts";

/**
 * Flattens blocks of other protocols into text and media, or drops and names them.
 * @throws {GatewayError} `invalid`, if the model would have to read a block that cannot be flattened
 */
export function flattenContent(prompt: Prompt, target: AdaptTarget): Prompt {
  const flatten = (block: ContentBlock, role: Message["role"]): ContentBlock | ContentBlock[] =>
    block.type === "vendor_specific" && block.from !== target.protocol
      ? flattenVendorSpecific(block, { role, protocol: prompt.protocol, dropped: target.dropped })
      : block;
  return mapPrompt(prompt, flatten);
}

/**
 * Drops empty text, and messages with nothing else. Anthropic refuses white space alone, too. Reasoning without text
 * stays for its signature.
 */
export function dropEmpty(prompt: Prompt, { protocol }: AdaptTarget): Prompt {
  const isEmpty = (text: string) => (protocol === "messages" ? text.trim() : text) === "";
  const keep = (block: ContentBlock): ContentBlock | ContentBlock[] =>
    (block.type === "text" || block.type === "refusal") && isEmpty(block.text) ? [] : block;
  const kept = mapPrompt(prompt, keep);
  const isSilent = kept.messages.some(({ blocks }) => blocks.length === 0);
  return isSilent ? withMessages(kept, kept.messages.filter(({ blocks }) => blocks.length > 0)) : kept;
}
