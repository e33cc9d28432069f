/** Stop sequences that the upstream is not given are enforced here. */
import type { Machine, Prompt, ReplyEvent, TokenUsage } from "../canonical/types.ts";
import { isHighSurrogate } from "../../text.ts";
import { type AdaptTarget, PARAMETER_NAMES } from "./adapt_target.ts";

/** A prompt with the stop sequences its upstream takes, and those that are left to us. */
export interface SplitStopSequences {
  prompt: Prompt;
  ours: string[];
}

/**
 * Parts the stop sequences: the upstream gets as many as it takes, in their order. Empty ones, and those with half a
 * character, stop nothing.
 */
export function splitStopSequences(
  prompt: Prompt,
  { dialect, protocol, row, dropped }: AdaptTarget,
): SplitStopSequences {
  if (prompt.stop.length === 0) return { prompt, ours: [] };
  const all = [...new Set(prompt.stop)];
  const stops = all.filter((stop) => stop !== "" && stop.isWellFormed());
  if (stops.length < all.length) dropped.add(PARAMETER_NAMES[prompt.protocol].stop);
  const most = row.supported_parameters.includes("stop") ? dialect.stops : 0;
  // Anthropic takes none that are only white space.
  const usable = stops.filter((stop) => protocol !== "messages" || stop.trim() !== "");
  const theirs = new Set(usable.slice(0, most));
  return {
    prompt: { ...prompt, stop: stops.filter((stop) => theirs.has(stop)) },
    ours: stops.filter((stop) => !theirs.has(stop)),
  };
}

/**
 * Ends an answer at the first stop sequence in its text, which is cut off. Text is held back as long as it could be the
 * beginning of one. Reasoning and arguments of tools are not searched. The answer's usage is then not known beyond what
 * its start told of the input.
 * @param stops texts of one or more whole characters
 */
export function enforceStopSequences(stops: readonly string[]): Machine<ReplyEvent, ReplyEvent> {
  const longest = Math.max(...stops.map((stop) => stop.length));
  let known: TokenUsage = {};
  /** Text that is held back; undefined outside of text blocks. */
  let held: string | undefined;
  let over = false;

  function search(index: number, text: string): ReplyEvent[] {
    const match = firstMatch(text, stops);
    if (match === undefined) {
      const end = wholeCharacters(text, Math.max(0, text.length - longest + 1));
      held = text.slice(end);
      return delta(index, text.slice(0, end));
    }
    over = true;
    return [
      ...delta(index, text.slice(0, match.start)),
      { type: "close", index },
      { type: "finish", reason: "stop_sequence", stopSequence: match.stop, usage: known },
    ];
  }

  return {
    push(event) {
      if (over) return [];
      switch (event.type) {
        case "start": {
          // What a start tells of the output is a guess.
          const { completion: _, reasoning: __, ...input } = event.usage ?? {};
          known = input;
          return [event];
        }
        case "open":
          held = event.block.type === "text" ? "" : undefined;
          return [event];
        case "delta":
          return held === undefined ? [event] : search(event.index, held + event.text);
        case "close": {
          const rest = held ?? "";
          held = undefined;
          return [...delta(event.index, rest), event];
        }
        default:
          return [event];
      }
    },
    end: () => [],
  };
}

/**
 * The match that is complete first, so that the answer is the same however its text is cut into pieces; of two that end
 * together, the longer.
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

/** The nearest place at or before one where no character is parted, nor may be by what follows. */
function wholeCharacters(text: string, end: number): number {
  return isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end;
}

function delta(index: number, text: string): ReplyEvent[] {
  return text === "" ? [] : [{ type: "delta", index, text }];
}
