import type { FinishReason, Machine, ReplyEvent } from "../canonical/types.ts";

/**
 * Corrects the end of an answer: the reason is `tool_use` exactly if there is a tool call (`length` excepted), calls
 * without a name are dropped, and blank arguments become `{}`.
 *
 * A call that `length` cut short keeps its incomplete arguments: in a stream they are already sent.
 */
export function normalizeFinish(): Machine<ReplyEvent, ReplyEvent> {
  let calls = 0;
  /** Blocks dropped so far; later indices move down. */
  let left = 0;
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
            left++;
            return [];
          }
          if (block.type === "tool_call") calls++;
          return [{ ...event, index: event.index - left }];
        }
        case "delta": {
          if (skipping) return [];
          if (blank === undefined && left === 0) return [event];
          const text = (blank ?? "") + event.text;
          if (blank !== undefined && text.trim() === "") {
            blank = text;
            return [];
          }
          blank = undefined;
          return [{ ...event, index: event.index - left, text }];
        }
        case "close": {
          if (skipping) return [];
          const index = event.index - left;
          const empty: ReplyEvent[] = blank === undefined ? [] : [{ type: "delta", index, text: "{}" }];
          blank = undefined;
          return [...empty, { ...event, index }];
        }
        case "citation":
          return skipping ? [] : [{ ...event, index: event.index - left }];
        case "finish": {
          const reason = settle(event.reason, calls);
          const { stopSequence, ...rest } = event;
          return [{
            ...rest,
            reason,
            ...(reason === "stop_sequence" && stopSequence !== undefined && { stopSequence }),
          }];
        }
        default:
          return [event];
      }
    },
    end: () => [],
  };
}

function settle(reason: FinishReason, calls: number): FinishReason {
  if (reason === "length") return reason;
  if (calls > 0) return "tool_use";
  return reason === "tool_use" ? "end" : reason;
}
