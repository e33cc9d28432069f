/** Enforces the stop sequences that the upstream is not given. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { Machine, Prompt, ReplyEvent, TokenUsage } from "../canonical/types.ts";
import { isHighSurrogate } from "../../text.ts";
import type { AdaptTarget } from "./adapt_target.ts";

/** A prompt with the stop sequences for its upstream, and those for the gateway. */
export interface SplitStopSequences {
  prompt: Prompt;
  emulated: string[];
}

/**
 * Splits the stop sequences: the upstream gets as many as it accepts, in their order. Empty ones and those with half a
 * character are dropped.
 */
export function splitStopSequences(
  prompt: Prompt,
  { dialect, protocol, row, dropped }: AdaptTarget,
): SplitStopSequences {
  const all = [...new Set(prompt.stop)];
  const stops = all.filter((stop) => stop !== "" && stop.isWellFormed());
  if (stops.length < all.length) dropped.add(PARAMETER_NAMES[prompt.protocol].stop);
  const maxSequences = row.supported_parameters.includes("stop") ? dialect.stops : 0;
  // Anthropic refuses white space alone.
  const usable = stops.filter((stop) => protocol !== "messages" || stop.trim() !== "");
  const native = new Set(usable.slice(0, maxSequences));
  return {
    prompt: { ...prompt, stop: stops.filter((stop) => native.has(stop)) },
    emulated: stops.filter((stop) => !native.has(stop)),
  };
}

/**
 * Ends an answer at the first stop sequence in its text, which is cut off. Holds back text that could be the beginning
 * of one. Does not search reasoning and tool arguments. The usage of a cut answer is what its start reported of the
 * input.
 * @param stops texts of one or more whole characters
 */
export function enforceStopSequences(stops: readonly string[]): Machine<ReplyEvent, ReplyEvent> {
  const longest = Math.max(...stops.map((stop) => stop.length));
  let known: TokenUsage = {};
  /** Text that is held back; undefined outside of text blocks. */
  let queued: string | undefined;
  let isDone = false;

  function search(index: number, text: string): ReplyEvent[] {
    const match = firstMatch(text, stops);
    if (match === undefined) {
      const end = wholeCharacters(text, Math.max(0, text.length - longest + 1));
      queued = text.slice(end);
      return delta(index, text.slice(0, end));
    }
    isDone = true;
    return [
      ...delta(index, text.slice(0, match.start)),
      { type: "close", index },
      { type: "finish", reason: "stop_sequence", stopSequence: match.stop, usage: known },
    ];
  }

  return {
    push(event) {
      if (isDone) return [];
      switch (event.type) {
        case "start": {
          // The output count at the start is a guess.
          const { completion: _, reasoning: __, ...input } = event.usage ?? {};
          known = input;
          return [event];
        }
        case "open":
          queued = event.block.type === "text" ? "" : undefined;
          return [event];
        case "delta":
          return queued === undefined ? [event] : search(event.index, queued + event.text);
        case "close": {
          const pendingText = queued ?? "";
          queued = undefined;
          return [...delta(event.index, pendingText), event];
        }
        default:
          return [event];
      }
    },
    end: () => [],
  };
}

/**
 * Returns the match that is complete first, so that the answer does not depend on the pieces of its text; of two that
 * end together, the longer.
 */
function firstMatch(text: string, stops: readonly string[]): { stop: string; start: number } | undefined {
  let best: { stop: string; start: number } | undefined;
  for (const stop of stops) {
    const start = text.indexOf(stop);
    if (start < 0) continue;
    const before = best === undefined ? Infinity : best.start + best.stop.length;
    const end = start + stop.length;
    if (end < before || (end === before && best !== undefined && stop.length > best.stop.length)) {
      best = { stop, start };
    }
  }
  return best;
}

/** Returns the nearest position at or before `end` that does not split a character. */
function wholeCharacters(text: string, end: number): number {
  return isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end;
}

function delta(index: number, text: string): ReplyEvent[] {
  return text === "" ? [] : [{ type: "delta", index, text }];
}
