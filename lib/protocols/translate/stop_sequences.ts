/** Splits stop sequences between upstream and gateway, and ends answers at those that the gateway enforces. */
import { inputUsage } from "../canonical/input_tokens.ts";
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import {
  deltaOf,
  type EventTransform,
  type Prompt,
  type ReplyEvent,
  type TokenLogprob,
  type TokenUsage,
} from "../canonical/types.ts";
import { isHighSurrogate } from "../../text.ts";
import { stringOf } from "../members.ts";
import type { AdaptTarget } from "../upstream_codec.ts";

/** A prompt with the stop sequences for its upstream, and those that the gateway enforces. */
export interface SplitStopSequences {
  prompt: Prompt;
  gatewayStops: string[];
}

/**
 * Splits the stop sequences: the upstream gets the first ones, as many as it accepts. Empty ones and those with half a
 * surrogate pair are dropped.
 */
export function splitStopSequences(
  prompt: Prompt,
  { dialect, protocol, row, dropped }: AdaptTarget,
): SplitStopSequences {
  const all = [...new Set(prompt.stop)];
  const stops = all.filter((stop) => stop !== "" && stop.isWellFormed());
  if (stops.length < all.length) dropped.add(PARAMETER_NAMES[prompt.protocol].stop);
  const maxStops = row.supported_parameters.includes("stop") ? dialect.stops : 0;
  // Anthropic refuses stop sequences of only white space.
  const usable = stops.filter((stop) => protocol !== "messages" || stop.trim() !== "");
  const upstreamStops = new Set(usable.slice(0, maxStops));
  return {
    prompt: { ...prompt, stop: stops.filter((stop) => upstreamStops.has(stop)) },
    gatewayStops: stops.filter((stop) => !upstreamStops.has(stop)),
  };
}

/**
 * Creates a transform that ends an answer before the first stop sequence in its text. It holds back text that could be
 * the beginning of one, and does not search reasoning and tool arguments. The usage of an answer that it ends has only
 * the input counts that the start of the answer reported.
 * @param stops texts that are not empty and have no half of a surrogate pair
 */
export function enforceStopSequences(stops: readonly string[]): EventTransform {
  const longest = Math.max(...stops.map((stop) => stop.length));
  let startUsage: TokenUsage = {};
  /** Text that is held back; undefined outside of text blocks. */
  let held: string | undefined;
  /** Tokens of the held text and of the text that follows. */
  let tokens: readonly TokenLogprob[] = [];
  let isOver = false;

  /** Returns the events of the first part of the text, with the tokens that end within it. */
  function release(index: number, text: string, length: number): ReplyEvent[] {
    const end = endOfTokens(tokens, text.length - length);
    const first = tokens.slice(0, end);
    tokens = tokens.slice(end);
    return [
      ...(end === 0 ? [] : [{ type: "logprobs" as const, index, tokens: first }]),
      ...deltaOf(index, text.slice(0, length)),
    ];
  }

  function search(index: number, text: string): ReplyEvent[] {
    const match = firstMatch(text, stops);
    if (match === undefined) {
      const end = wholeCharacters(text, Math.max(0, text.length - longest + 1));
      held = text.slice(end);
      return release(index, text, end);
    }
    isOver = true;
    return [
      ...release(index, text, match.start),
      { type: "close", index },
      { type: "finish", reason: "stop_sequence", stopSequence: match.stop, usage: startUsage },
    ];
  }

  return (event) => {
    if (isOver) return [];
    switch (event.type) {
      case "start":
        // The output count at the start is a guess.
        startUsage = inputUsage(event.usage ?? {}) ?? {};
        return [event];
      case "open":
        held = event.block.type === "text" ? "" : undefined;
        return [event];
      case "delta":
        return held === undefined ? [event] : search(event.index, held + event.text);
      case "logprobs":
        if (held === undefined) return [event];
        tokens = [...tokens, ...event.tokens];
        return [];
      case "close": {
        const heldText = held ?? "";
        held = undefined;
        return [...release(event.index, heldText, heldText.length), event];
      }
      default:
        return [event];
    }
  };
}

/**
 * Returns the number of tokens that end before the last characters of their text. It is counted from the end: some
 * tokens are not spelled like their text, so that counts from the beginning would differ more and more.
 */
function endOfTokens(tokens: readonly TokenLogprob[], characters: number): number {
  let end = tokens.length;
  for (let left = characters; left > 0 && end > 0;) left -= stringOf(tokens[--end]?.token)?.length || 1;
  return end;
}

/**
 * Returns the match that ends first, so that the answer does not depend on how its text is split into pieces; the
 * longer one of two that end at the same position.
 */
function firstMatch(text: string, stops: readonly string[]): { stop: string; start: number } | undefined {
  let best: { stop: string; start: number } | undefined;
  for (const stop of stops) {
    const start = text.indexOf(stop);
    if (start < 0) continue;
    const bestEnd = best === undefined ? Infinity : best.start + best.stop.length;
    const end = start + stop.length;
    if (end < bestEnd || (end === bestEnd && best !== undefined && stop.length > best.stop.length)) {
      best = { stop, start };
    }
  }
  return best;
}

/** Returns the nearest position at or before `end` that does not split a character. */
function wholeCharacters(text: string, end: number): number {
  return isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end;
}
