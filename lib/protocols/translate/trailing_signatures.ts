import type { Machine, ReplyEvent } from "../canonical/types.ts";

/**
 * For clients of the messages protocol: drops hidden reasoning after the last text of an answer without tool calls.
 * Chat and Gemini sign a streamed answer at its end, but Claude Code prints only the last block of an answer. Anthropic
 * drops the same: reasoning from before the user's next message.
 */
export function dropTrailingSignatures(): Machine<ReplyEvent, ReplyEvent> {
  let hasText = false;
  let hasCalls = false;
  /** Index of the open hidden block. */
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
