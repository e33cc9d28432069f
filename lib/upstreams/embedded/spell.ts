/** A planned answer, spelled out event by event within its limits. */
import type { FinishReason, OpenBlock, ReplyEvent } from "../../protocols/canonical/types.ts";
import { type TokenCounter, tokenPieces } from "../../o200k/mod.ts";
import type { Planned } from "./answer.ts";
import { sign } from "./thinking.ts";

/** What ends an answer early, and what its usage begins with. */
export interface SpellLimits {
  /** Tokens of the answer, reasoning included. */
  maxTokens: number;
  stop: readonly string[];
  /** Tokens of the prompt. */
  inputTokens: number;
}

/** An event, or nothing: then others may have a turn. */
type Step = ReplyEvent | undefined;

/**
 * The events of an answer, a token in each delta. Every block counts as its text counts alone, a call as its names and its
 * arguments. A character or a call that does not fit as a whole is left out. Reasoning that is hidden counts all the same.
 */
export function* spell(planned: Planned, limits: SpellLimits, counter: TokenCounter): Generator<Step, void, undefined> {
  let left = limits.maxTokens;
  let reasoning = 0;
  let index = 0;
  const finish = (reason: FinishReason, stopSequence?: string): ReplyEvent => ({
    type: "finish",
    reason,
    ...(stopSequence !== undefined && { stopSequence }),
    usage: { prompt: limits.inputTokens, completion: limits.maxTokens - left, reasoning },
  });

  yield { type: "start", usage: { prompt: limits.inputTokens } };

  if (planned.reasoning !== undefined) {
    const { text, hidden } = planned.reasoning;
    const block: OpenBlock = { type: "reasoning", ...(hidden && { hidden }) };
    const said = yield* say(text, { index, block, room: left, silent: hidden }, counter);
    left -= said.tokens;
    reasoning = said.tokens;
    if (said.text !== "") yield { type: "close", index: index++, signature: sign(said.text) };
    if (!said.whole) return yield finish("length");
  }

  const stop = firstStop(planned.text, limits.stop);
  const said = yield* say(planned.text.slice(0, stop?.at), { index, block: { type: "text" }, room: left }, counter);
  left -= said.tokens;
  if (said.text !== "") yield { type: "close", index: index++ };
  if (!said.whole) return yield finish("length");
  if (stop !== undefined) return yield finish("stop_sequence", stop.sequence);

  for (const { type, id, name, arguments: input, custom, namespace } of planned.calls) {
    const names = counter.count(name) + counter.count(namespace ?? "");
    const written = yield* collect(input, left - names, counter);
    if (written === undefined) return yield finish("length");
    left -= names + written.tokens;
    const open = { type, id, name, ...(custom && { custom }), ...(namespace !== undefined && { namespace }) };
    yield { type: "open", index, block: open };
    for (const text of written.texts) yield { type: "delta", index, text };
    yield { type: "close", index: index++ };
  }
  yield finish(planned.calls.length > 0 ? "tool_use" : "end");
}

/** What was said of a text. */
interface Said {
  text: string;
  tokens: number;
  /** False: it was cut. */
  whole: boolean;
}

/** Says as much of a text as there is room for. The block opens with its first token, and stays open. */
function* say(
  text: string,
  { index, block, room, silent = false }: { index: number; block: OpenBlock; room: number; silent?: boolean },
  counter: TokenCounter,
): Generator<Step, Said, undefined> {
  let said = "";
  let tokens = 0;
  for (const piece of tokenPieces(text, counter)) {
    if (piece === undefined) {
      yield undefined;
      continue;
    }
    if (tokens + piece.tokens > room) return { text: said, tokens, whole: false };
    if (said === "") yield { type: "open", index, block };
    said += piece.text;
    tokens += piece.tokens;
    if (!silent) yield { type: "delta", index, text: piece.text };
  }
  return { text: said, tokens, whole: true };
}

/** The tokens of a text, where there is room for all. */
function* collect(
  text: string,
  room: number,
  counter: TokenCounter,
): Generator<undefined, { texts: string[]; tokens: number } | undefined, undefined> {
  const texts: string[] = [];
  let tokens = 0;
  for (const piece of tokenPieces(text, counter)) {
    if (piece === undefined) {
      yield undefined;
      continue;
    }
    tokens += piece.tokens;
    if (tokens > room) return undefined;
    texts.push(piece.text);
  }
  return tokens > room ? undefined : { texts, tokens };
}

/** The earliest stop sequence in a text; of two at one place the one that was listed first. */
function firstStop(text: string, stop: readonly string[]): { at: number; sequence: string } | undefined {
  let first: { at: number; sequence: string } | undefined;
  for (const sequence of stop) {
    const at = sequence === "" ? -1 : text.indexOf(sequence);
    if (at >= 0 && (first === undefined || at < first.at)) first = { at, sequence };
  }
  return first;
}
