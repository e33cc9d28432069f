/** Moves images and files out of tool results, for upstreams whose results are text. */
import type { ContentBlock, Message, Prompt } from "../canonical/types.ts";

/**
 * Moves media from tool results to the user message, directly after its last result. A line of text in both places
 * tells the model which belongs where.
 */
export function moveMediaOutOfResults(prompt: Prompt): Prompt {
  let moved: ContentBlock[] = [];
  let count = 0;

  function takeOut(block: ContentBlock): ContentBlock {
    if (block.type !== "tool_result") return block;
    const blocks = block.blocks.map((inner): ContentBlock => {
      if (inner.type !== "media") return inner;
      const label = `[Attachment ${++count} of the tool results${inner.name === undefined ? "" : `: ${inner.name}`}]`;
      moved.push({ type: "text", text: label }, inner);
      return { type: "text", text: label };
    });
    return { ...block, blocks };
  }

  const messages = prompt.messages.map((message, index): Message => {
    if (message.role !== "user") return message;
    const blocks = message.blocks.map(takeOut);
    const next = prompt.messages[index + 1];
    if (moved.length === 0 || (next !== undefined && hasResult(next))) return { ...message, blocks };
    const after = blocks.findLastIndex(({ type }) => type === "tool_result") + 1;
    const all = [...blocks.slice(0, after), ...moved, ...blocks.slice(after)];
    moved = [];
    count = 0;
    return { ...message, blocks: all };
  });
  return { ...prompt, messages };
}

function hasResult({ role, blocks }: Message): boolean {
  return role === "user" && blocks.some(({ type }) => type === "tool_result");
}
