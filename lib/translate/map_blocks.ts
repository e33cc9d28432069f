/** Walks over the blocks of a conversation. */
import type { Block, Message } from "../canonical/types.ts";

/** What a step makes of one block: nothing, itself, or others. `inResult`: it stands inside a tool's result. */
export type MapBlock = (block: Block, place: { role: Message["role"]; inResult: boolean }) => Block[];

/**
 * The messages with every block replaced by what the step makes of it; blocks inside tool results come before the result
 * itself. A message that loses its last block goes; one that had none stays.
 */
export function mapMessages(messages: readonly Message[], map: MapBlock): Message[] {
  return messages.flatMap((message): Message[] => {
    const { role, blocks } = message;
    const mapped = blocks.flatMap((block) => {
      if (block.type !== "tool_result") return map(block, { role, inResult: false });
      const inner = block.blocks.flatMap((block) => map(block, { role, inResult: true }));
      return map({ ...block, blocks: inner }, { role, inResult: false });
    });
    return mapped.length === 0 && blocks.length > 0 ? [] : [{ ...message, blocks: mapped }];
  });
}
