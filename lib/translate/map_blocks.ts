/** Walks over the blocks of a conversation. */
import type { Block, Message } from "../canonical/types.ts";

/** Where a block stands. `inResult`: inside a tool's result. */
interface Place {
  role: Message["role"];
  inResult: boolean;
}

/** What a step makes of one block: the same block where it stays what it is, another one, or several or none in a list. */
export type MapBlock = (block: Block, place: Place) => Block | readonly Block[];

/**
 * The messages with every block replaced by what the step makes of it; blocks inside tool results come before the result
 * itself. A message that loses its last block goes; one that had none stays. Messages in which nothing changes are the
 * same objects: most steps change none.
 */
export function mapMessages(messages: readonly Message[], map: MapBlock): Message[] {
  const all: Message[] = [];
  for (const message of messages) {
    const blocks = mapBlocks(message.blocks, map, { role: message.role, inResult: false });
    if (blocks === message.blocks) all.push(message);
    else if (blocks.length > 0) all.push({ ...message, blocks });
  }
  return all;
}

/** The same list where every block stays what it is. */
function mapBlocks(blocks: Block[], map: MapBlock, place: Place): Block[] {
  let mapped: Block[] | undefined;
  for (const [index, block] of blocks.entries()) {
    const made = map(place.inResult ? block : withMappedResult(block, map, place), place);
    if (made === block && mapped === undefined) continue;
    mapped ??= blocks.slice(0, index);
    if (isBlock(made)) mapped.push(made);
    else mapped.push(...made);
  }
  return mapped ?? blocks;
}

function withMappedResult(block: Block, map: MapBlock, { role }: Place): Block {
  if (block.type !== "tool_result") return block;
  const blocks = mapBlocks(block.blocks, map, { role, inResult: true });
  return blocks === block.blocks ? block : { ...block, blocks };
}

function isBlock(made: Block | readonly Block[]): made is Block {
  return !Array.isArray(made);
}
