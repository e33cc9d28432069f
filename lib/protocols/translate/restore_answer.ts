/** Machines that change the events of an answer after it was read from the target. */
import { finishEvent, settledReason } from "../canonical/finish.ts";
import type { Machine, ReplyEvent } from "../canonical/types.ts";

/** Chains machines: the output of each is the input of the next. After a finish or an error the chain emits nothing. */
export function chainMachines(machines: readonly Machine<ReplyEvent, ReplyEvent>[]): Machine<ReplyEvent, ReplyEvent> {
  let isOver = false;

  function run(events: ReplyEvent[], following: readonly Machine<ReplyEvent, ReplyEvent>[]): ReplyEvent[] {
    let passed = events;
    for (const machine of following) {
      const [first] = passed;
      if (first === undefined) break;
      // Most calls have one event.
      passed = passed.length === 1 ? machine.push(first) : passed.flatMap((event) => machine.push(event));
    }
    return passed;
  }

  function cutAfterEnd(events: ReplyEvent[]): ReplyEvent[] {
    for (let index = 0; index < events.length; index++) {
      const type = events[index]?.type;
      if (type !== "finish" && type !== "error") continue;
      isOver = true;
      return events.slice(0, index + 1);
    }
    return events;
  }

  return {
    push: (event) => isOver ? [] : cutAfterEnd(run([event], machines)),
    end: () => isOver ? [] : cutAfterEnd(machines.flatMap((machine, at) => run(machine.end(), machines.slice(at + 1)))),
  };
}

/**
 * Creates a machine that corrects the end of an answer: the reason is `tool_use` exactly if there is a tool call
 * (`length` excepted), calls without a name are dropped, and blank arguments become `{}`.
 *
 * A call that `length` cut off keeps its incomplete arguments: in a stream they are already sent.
 */
export function normalizeFinish(): Machine<ReplyEvent, ReplyEvent> {
  let calls = 0;
  /** Number of blocks dropped so far, by which later indices are lowered. */
  let droppedBlocks = 0;
  let isDropping = false;
  /** White space before the first character of a call's arguments; undefined outside of it. */
  let blank: string | undefined;

  return {
    push(event) {
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
    },
    end: () => [],
  };
}

/**
 * Creates a machine for clients of the messages protocol. It drops hidden reasoning after the last text of an answer
 * without tool calls: chat and Gemini sign a streamed answer at its end, but Claude Code prints only the last block of
 * an answer. The signature is not needed: Anthropic drops reasoning from before the user's next message.
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
      const before = event.type === "finish" || event.type === "error" ? [] : held;
      held = [];
      return [...before, event];
    },
    end: () => [],
  };
}
