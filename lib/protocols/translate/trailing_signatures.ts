/** Signatures that come when all is said. */
import type { Machine, ReplyEvent } from "../canonical/types.ts";

/**
 * For clients of the messages protocol: leaves out hidden reasoning that follows the last text of an answer without tool
 * calls. Chat and Gemini sign a streamed answer at its end, but an answer that ends in reasoning is empty to Claude Code:
 * it prints the last block. What is lost is what the vendor of this protocol leaves out itself: reasoning from before the
 * user's next message.
 */
export function dropTrailingSignatures(): Machine<ReplyEvent, ReplyEvent> {
  let hasText = false;
  let hasCalls = false;
  /** Index of the hidden block that is open. */
  let hidden: number | undefined;
  let held: ReplyEvent[] = [];

  return {
    push(event) {
      if (event.type === "open") {
        hasText ||= event.block.type === "text";
        hasCalls ||= event.block.type === "tool_call";
        const isLate = event.block.type === "reasoning" && event.block.hidden === true && hasText && !hasCalls;
        hidden = isLate ? event.index : undefined;
      }
      if (hidden !== undefined && "index" in event && event.index === hidden) {
        held.push(event);
        return [];
      }
      const before = event.type === "finish" ? [] : held;
      held = [];
      return [...before, event];
    },
    end: () => [],
  };
}
