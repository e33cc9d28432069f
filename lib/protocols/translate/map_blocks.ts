/** Applies a function to every block of a conversation, in steps. */
import type { ContentBlock, ContentBlockOf, Message, Prompt } from "../canonical/types.ts";

/** Maps one block: returns the same block if nothing changes, another block, or a list of blocks. */
export type MapBlock = (block: ContentBlock, role: Message["role"]) => ContentBlock | readonly ContentBlock[];

/** Blocks mapped in one step: some changes, such as a new id, take a few microseconds per block. */
const BLOCKS_PER_STEP = 256;

/**
 * Returns the prompt with every block mapped, in steps. Blocks inside a tool result are mapped before the result. A
 * message without any block left is removed. If nothing changes, the same prompt is returned.
 */
export function* mapPrompt(prompt: Prompt, map: MapBlock): Generator<void, Prompt> {
  return withMessages(prompt, yield* mapMessages(prompt.messages, map));
}

/** Returns the prompt with other messages; the same prompt if the messages are its own. */
export function withMessages(prompt: Prompt, messages: Message[]): Prompt {
  return messages === prompt.messages ? prompt : { ...prompt, messages };
}

/** Items mapped in one step: an item may have many members. */
const ITEMS_PER_STEP = 64;

/** Maps a list, in steps; returns the same list if nothing changes. */
export function* mapEach<T>(items: T[], map: (item: T) => T): Generator<void, T[]> {
  let mapped: T[] | undefined;
  let index = 0;
  for (const item of items) {
    const result = map(item);
    if (result !== item) (mapped ??= [...items])[index] = result;
    if (++index % ITEMS_PER_STEP === 0) yield;
  }
  return mapped ?? items;
}

function* mapMessages(messages: Message[], map: MapBlock): Generator<void, Message[]> {
  let mapped: Message[] | undefined;
  let index = 0;
  let blocksSinceYield = 0;
  for (const message of messages) {
    // Most messages have few blocks: a generator for each message would take longer than its blocks.
    const blocks = message.blocks.length <= BLOCKS_PER_STEP
      ? mapBlocks(message, map)
      : yield* mapManyBlocks(message, map);
    if ((blocksSinceYield += message.blocks.length) >= BLOCKS_PER_STEP) {
      blocksSinceYield = 0;
      yield;
    }
    if (blocks !== message.blocks) {
      mapped ??= messages.slice(0, index);
      if (blocks.length > 0) mapped.push({ ...message, blocks });
    } else {
      mapped?.push(message);
    }
    index++;
  }
  return mapped ?? messages;
}

/** As `mapBlocks`, in steps. */
function* mapManyBlocks({ role, blocks }: Message, map: MapBlock): Generator<void, ContentBlock[]> {
  const mapped: ContentBlock[] = [];
  let isSame = true;
  for (let start = 0; start < blocks.length; start += BLOCKS_PER_STEP) {
    const slice = blocks.slice(start, start + BLOCKS_PER_STEP);
    const result = mapBlocks({ role, blocks: slice }, map);
    isSame &&= result === slice;
    for (const block of result) mapped.push(block);
    yield;
  }
  return isSame ? blocks : mapped;
}

/** Returns the same list if no block changes. */
function mapBlocks({ role, blocks }: Pick<Message, "role" | "blocks">, map: MapBlock): ContentBlock[] {
  let mapped: ContentBlock[] | undefined;
  let index = 0;
  for (const block of blocks) {
    const result = map(block.type === "tool_result" ? withMappedResult(block, { role, map }) : block, role);
    if (result !== block) mapped ??= blocks.slice(0, index);
    if (mapped !== undefined) {
      if (isBlock(result)) mapped.push(result);
      else mapped.push(...result);
    }
    index++;
  }
  return mapped ?? blocks;
}

function withMappedResult(
  block: ContentBlockOf<"tool_result">,
  { role, map }: { role: Message["role"]; map: MapBlock },
): ContentBlock {
  const blocks = mapBlocks({ role, blocks: block.blocks }, map);
  return blocks === block.blocks ? block : { ...block, blocks };
}

function isBlock(result: ContentBlock | readonly ContentBlock[]): result is ContentBlock {
  return !Array.isArray(result);
}
