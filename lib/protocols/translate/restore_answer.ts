/** Transforms of the events of an answer that was read from the target. */
import { finishEvent, settledReason } from "../canonical/finish.ts";
import type { EventTransform, ReplyEvent } from "../canonical/types.ts";

/** Chains transforms: each gets the events of the one before. After a finish or an error the chain returns nothing. */
export function chainTransforms(transforms: readonly EventTransform[]): EventTransform {
  let isOver = false;
  return (event) => {
    let events = isOver ? [] : [event];
    for (const transform of transforms) {
      const [first] = events;
      if (first === undefined) break;
      // Most calls have one event.
      events = events.length === 1 ? transform(first) : events.flatMap(transform);
    }
    const end = events.findIndex(({ type }) => type === "finish" || type === "error");
    isOver ||= end >= 0;
    return end < 0 ? events : events.slice(0, end + 1);
  };
}

/**
 * Creates a transform that corrects the end of an answer: the reason is `tool_use` exactly if there is a tool call
 * (`length` excepted), calls without a name are dropped, and blank arguments become `{}`.
 *
 * A call that `length` cut off keeps its incomplete arguments: in a stream they are already sent.
 */
export function normalizeFinish(): EventTransform {
  let calls = 0;
  /** Number of blocks dropped so far, by which later indices are lowered. */
  let droppedBlocks = 0;
  let isDropping = false;
  /** White space before the first character of a call's arguments; undefined outside of it. */
  let blank: string | undefined;

  return (event) => {
    switch (event.type) {
      case "open": {
        const { block } = event;
        isDropping = block.type === "tool_call" && block.name.trim() === "";
        blank = block.type === "tool_call" && block.custom !== true ? "" : undefined;
        if (isDropping) {
          droppedBlocks++;
          return [];
        }
        if (block.type === "tool_call") calls++;
        return [{ ...event, index: event.index - droppedBlocks }];
      }
      case "delta": {
        if (isDropping) return [];
        if (blank === undefined && droppedBlocks === 0) return [event];
        // Only the new piece is searched, because some models write white space without end.
        if (blank !== undefined && event.text.trim() === "") {
          blank += event.text;
          return [];
        }
        const text = (blank ?? "") + event.text;
        blank = undefined;
        return [{ ...event, index: event.index - droppedBlocks, text }];
      }
      case "close": {
        if (isDropping) return [];
        const index = event.index - droppedBlocks;
        const empty: ReplyEvent[] = blank === undefined ? [] : [{ type: "delta", index, text: "{}" }];
        blank = undefined;
        return [...empty, { ...event, index }];
      }
      case "citation":
      case "logprobs":
        return isDropping ? [] : [{ ...event, index: event.index - droppedBlocks }];
      case "finish":
        return [finishEvent(settledReason(event.reason, calls > 0), event)];
      default:
        return [event];
    }
  };
}

/**
 * Creates a transform for clients of the messages protocol. It drops hidden reasoning after the last text of an answer
 * without tool calls: chat and Gemini sign a streamed answer at its end, but Claude Code prints only the last block of
 * an answer. The signature is not needed: Anthropic drops reasoning from before the user's next message.
 */
export function dropTrailingSignatures(): EventTransform {
  let hasText = false;
  let hasCalls = false;
  /** Index of the open hidden block. */
  let hidden: number | undefined;
  let held: ReplyEvent[] = [];

  return (event) => {
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
    const before = event.type === "finish" || event.type === "error" ? [] : held;
    held = [];
    return [...before, event];
  };
}
