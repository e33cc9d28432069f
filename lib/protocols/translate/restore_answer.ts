/** Machines that change an answer after it was read from the target. */
import { finishEvent, settledReason } from "../canonical/finish.ts";
import type { Machine, ReplyEvent } from "../canonical/types.ts";

/** Chains machines: the output of each is the input of the next. After a finish or an error the chain is over. */
export function chainMachines(machines: readonly Machine<ReplyEvent, ReplyEvent>[]): Machine<ReplyEvent, ReplyEvent> {
  let isDone = false;

  function run(events: ReplyEvent[], from: number): ReplyEvent[] {
    let passed = events;
    for (let at = from; at < machines.length && passed.length > 0; at++) passed = through(machines[at], passed);
    return passed;
  }

  function cut(events: ReplyEvent[]): ReplyEvent[] {
    for (let at = 0; at < events.length; at++) {
      const type = events[at]?.type;
      if (type !== "finish" && type !== "error") continue;
      isDone = true;
      return events.slice(0, at + 1);
    }
    return events;
  }

  return {
    push: (event) => isDone ? [] : cut(run([event], 0)),
    end: () => isDone ? [] : cut(machines.flatMap((machine, index) => run(machine.end(), index + 1))),
  };
}

function through(machine: Machine<ReplyEvent, ReplyEvent> | undefined, events: ReplyEvent[]): ReplyEvent[] {
  if (machine === undefined) return events;
  const [event] = events;
  // Usually there is one event.
  if (events.length === 1 && event !== undefined) return machine.push(event);
  return events.flatMap((event) => machine.push(event));
}

/**
 * Corrects the end of an answer: the reason is `tool_use` exactly if there is a tool call (`length` excepted), calls
 * without a name are dropped, and blank arguments become `{}`.
 *
 * A call that `length` cut short keeps its incomplete arguments: in a stream they are already sent.
 */
export function normalizeFinish(): Machine<ReplyEvent, ReplyEvent> {
  let calls = 0;
  /** Blocks dropped so far; later indices move down. */
  let emptyBlocks = 0;
  let skipping = false;
  /** White space before the first character of arguments; undefined elsewhere. */
  let blank: string | undefined;

  return {
    push(event) {
      switch (event.type) {
        case "open": {
          const { block } = event;
          skipping = block.type === "tool_call" && block.name.trim() === "";
          blank = block.type === "tool_call" && block.custom !== true ? "" : undefined;
          if (skipping) {
            emptyBlocks++;
            return [];
          }
          if (block.type === "tool_call") calls++;
          return [{ ...event, index: event.index - emptyBlocks }];
        }
        case "delta": {
          if (skipping) return [];
          if (blank === undefined && emptyBlocks === 0) return [event];
          const text = (blank ?? "") + event.text;
          if (blank !== undefined && text.trim() === "") {
            blank = text;
            return [];
          }
          blank = undefined;
          return [{ ...event, index: event.index - emptyBlocks, text }];
        }
        case "close": {
          if (skipping) return [];
          const index = event.index - emptyBlocks;
          const empty: ReplyEvent[] = blank === undefined ? [] : [{ type: "delta", index, text: "{}" }];
          blank = undefined;
          return [...empty, { ...event, index }];
        }
        case "citation":
          return skipping ? [] : [{ ...event, index: event.index - emptyBlocks }];
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
 * For clients of the messages protocol: drops hidden reasoning after the last text of an answer without tool calls.
 * Chat and Gemini sign a streamed answer at its end, but Claude Code prints only the last block of an answer. Anthropic
 * drops the same: reasoning from before the user's next message.
 */
export function dropTrailingSignatures(): Machine<ReplyEvent, ReplyEvent> {
  let hasText = false;
  let hasCalls = false;
  /** Index of the open hidden block. */
  let hidden: number | undefined;
  let queued: ReplyEvent[] = [];

  return {
    push(event) {
      if (event.type === "open") {
        hasText ||= event.block.type === "text";
        hasCalls ||= event.block.type === "tool_call";
        const isLate = event.block.type === "reasoning" && event.block.hidden === true && hasText && !hasCalls;
        hidden = isLate ? event.index : undefined;
      }
      if (hidden !== undefined && "index" in event && event.index === hidden) {
        queued.push(event);
        return [];
      }
      const before = event.type === "finish" ? [] : queued;
      queued = [];
      return [...before, event];
    },
    end: () => [],
  };
}
