/** Takes JSON out of what surrounds it in an answer: a Markdown code fence, or an object that the gateway asked for. */
import { deltaOf, type EventTransform } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

/** The text around the JSON. White space in it has a maximum length, which bounds the text that is held back. */
interface JsonFrame {
  opening: RegExp;
  /** True if a text may be the beginning of `opening`. */
  mayOpen(text: string): boolean;
  closing: RegExp;
  /** Matches the end of a text that may be the beginning of `closing`. */
  maybeClosing: RegExp;
}

const MAYBE_FENCE = /^\s{0,16}(?:`{1,2}|```\w{0,16}[^\S\n]{0,16})?$/;

const CODE_FENCE: JsonFrame = {
  opening: /^\s{0,16}```\w{0,16}[^\S\n]{0,16}\n/,
  mayOpen: (text) => MAYBE_FENCE.test(text),
  closing: /\s{0,16}```\s{0,16}$/,
  maybeClosing: /\s{0,16}(?:`{1,3}\s{0,16})?$/,
};

/** The longest opening of the object, with white space between its marks. */
const LONGEST_OPENING = 80;

const WRAPPER: JsonFrame = {
  opening: /^\s{0,16}\{\s{0,16}"answer"\s{0,16}:\s{0,16}(?=\S)/,
  mayOpen: (text) => text.length < LONGEST_OPENING,
  closing: /\s{0,16}\}\s{0,16}$/,
  maybeClosing: /\s{0,16}(?:\}\s{0,16})?$/,
};

/**
 * Creates a transform that removes the fence from texts that begin with one, which models write around JSON. JSON never
 * does, so JSON without a fence passes unchanged.
 */
export function removeCodeFence(): EventTransform {
  return removeFrame(CODE_FENCE);
}

/** Returns the schema of an object with one member for the answer. Definitions stay where references find them. */
export function wrapSchema({ $defs, definitions, ...schema }: JsonObject): JsonObject {
  return {
    type: "object",
    properties: { answer: schema },
    required: ["answer"],
    additionalProperties: false,
    ...($defs !== undefined && { $defs }),
    ...(definitions !== undefined && { definitions }),
  };
}

/** Creates a transform that takes the answer out of the object of `wrapSchema`. Other texts pass unchanged. */
export function unwrapAnswer(): EventTransform {
  return removeFrame(WRAPPER);
}

function removeFrame({ opening, mayOpen, closing, maybeClosing }: JsonFrame): EventTransform {
  let state: "outside" | "begin" | "inside" = "outside";
  /** Text that may belong to the frame. */
  let held = "";

  /** Returns the part of the text that does not belong to the frame, and holds back the rest. */
  function release(text: string): string {
    if (state === "begin") {
      const match = opening.exec(text);
      if (match === null && mayOpen(text)) {
        held = text;
        return "";
      }
      state = match === null ? "outside" : "inside";
      text = text.slice(match?.[0].length ?? 0);
    }
    const end = state === "inside" ? text.search(maybeClosing) : text.length;
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
        const rest = state === "inside" ? held.replace(closing, "") : held;
        held = "";
        return [...deltaOf(event.index, rest), event];
      }
      default:
        return [event];
    }
  };
}
