/** Takes JSON out of the Markdown code fence that models write around it. */
import { deltaOf, type EventTransform } from "../canonical/types.ts";

/** Longest white space beside a fence. It bounds the text that is held back. */
const OPENING = /^\s{0,16}```\w{0,16}[^\S\n]{0,16}\n/;
const MAYBE_OPENING = /^\s{0,16}(?:`{1,2}|```\w{0,16}[^\S\n]{0,16})?$/;
const CLOSING = /\s{0,16}```\s{0,16}$/;
const MAYBE_CLOSING = /\s{0,16}(?:`{1,3}\s{0,16})?$/;

/**
 * Creates a transform that removes the fence from texts that begin with one. JSON never does, so JSON without a fence
 * passes unchanged.
 */
export function removeCodeFence(): EventTransform {
  let state: "outside" | "begin" | "fenced" = "outside";
  /** Text that may belong to a fence. */
  let held = "";

  /** Returns the part of the text that belongs to no fence, and holds back the rest. */
  function release(text: string): string {
    if (state === "begin") {
      const opening = OPENING.exec(text);
      if (opening === null && MAYBE_OPENING.test(text)) {
        held = text;
        return "";
      }
      state = opening === null ? "outside" : "fenced";
      text = text.slice(opening?.[0].length ?? 0);
    }
    const end = state === "fenced" ? text.search(MAYBE_CLOSING) : text.length;
    held = text.slice(end);
    return text.slice(0, end);
  }

  return (event) => {
    switch (event.type) {
      case "open":
        state = event.block.type === "text" ? "begin" : "outside";
        return [event];
      case "delta":
        return state === "outside" ? [event] : deltaOf(event.index, release(held + event.text));
      case "close": {
        const rest = state === "fenced" ? held.replace(CLOSING, "") : held;
        held = "";
        return [...deltaOf(event.index, rest), event];
      }
      default:
        return [event];
    }
  };
}
