/** The order of events that every stream obeys. */
import type { Machine, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";

/**
 * Passes events on and throws at the first one out of order: one start; blocks with indices from 0, one open at a time,
 * each closed; one finish or error, then nothing; a tool call exactly if the reason is `tool_use` (`length` excepted).
 * @returns a machine whose `end()` throws if the stream is cut short
 */
export function checkGrammar(): Machine<ReplyEvent, ReplyEvent> {
  let state: "new" | "idle" | "open" | "over" = "new";
  let index = -1;
  let toolCalls = 0;

  function expect(holds: boolean, event: ReplyEvent, want: string): void {
    if (!holds) throw new RangeError(`Cannot take event "${event.type}" of block ${index}: expected ${want}`);
  }

  return {
    push(event) {
      switch (event.type) {
        case "start":
          expect(state === "new", event, "only one start");
          state = "idle";
          break;
        case "open":
          expect(state === "idle", event, "a started stream with no open block");
          expect(event.index === index + 1, event, `index ${index + 1}`);
          if (event.block.type === "tool_call") toolCalls++;
          index = event.index;
          state = "open";
          break;
        case "delta":
          expect(event.text !== "", event, "text");
          expect(state === "open" && event.index === index, event, "a delta of the open block");
          break;
        case "citation":
          expect(state === "open" && event.index === index, event, "a citation of the open block");
          break;
        case "close":
          expect(state === "open" && event.index === index, event, "the close of the open block");
          state = "idle";
          break;
        case "finish":
          expect(state === "idle", event, "a started stream with no open block");
          expect(event.reason !== "tool_use" || toolCalls > 0, event, "a tool call before the reason tool_use");
          expect(toolCalls === 0 || ["tool_use", "length"].includes(event.reason), event, "the reason tool_use");
          state = "over";
          break;
        case "error":
          expect(state !== "over", event, "nothing after the end");
          state = "over";
          break;
      }
      return [event];
    },
    end() {
      if (state !== "over") throw new RangeError("Cannot end the stream: expected a finish or an error");
      return [];
    },
  };
}
