/** Applies a function to every block of a conversation, in steps. */
import type { ContentBlock, Message, Prompt } from "../canonical/types.ts";

/** Maps one block to another block, to a list of blocks, or to itself. */
export type MapBlock = (block: ContentBlock, role: Message["role"]) => ContentBlock | readonly ContentBlock[];

/** Blocks mapped in one step: some changes, such as a new id, take a few microseconds per block. */
const BLOCKS_PER_STEP = 256;

/**
 * Returns a copy of the prompt with every block mapped, in steps. Blocks inside a tool result are mapped before the
 * result. A message that loses all its blocks is removed.
 */
export function* mapPrompt(prompt: Prompt, map: MapBlock): Generator<void, Prompt> {
  const messages: Message[] = [];
  let count = 0;
  for (const message of prompt.messages) {
    const blocks: ContentBlock[] = [];
    for (const block of message.blocks) {
      blocks.push(...mapBlocks([block], { role: message.role, map }));
      if (++count % BLOCKS_PER_STEP === 0) yield;
    }
    if (blocks.length > 0 || message.blocks.length === 0) messages.push({ ...message, blocks });
  }
  return { ...prompt, messages };
}

function mapBlocks(
  blocks: readonly ContentBlock[],
  { role, map }: { role: Message["role"]; map: MapBlock },
): ContentBlock[] {
  return blocks.flatMap((block) =>
    map(block.type === "tool_result" ? { ...block, blocks: mapBlocks(block.blocks, { role, map }) } : block, role)
  );
}

/** Items mapped in one step: an item may have many members. */
const ITEMS_PER_STEP = 64;

/** Maps a list, in steps. */
export function* mapEach<T>(items: readonly T[], map: (item: T) => T): Generator<void, T[]> {
  const mapped: T[] = [];
  for (const item of items) {
    if (mapped.push(map(item)) % ITEMS_PER_STEP === 0) yield;
  }
  return mapped;
}
