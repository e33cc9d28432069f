/** Emits a planned answer event by event, within its limits. */
import type { FinishReason, OpenBlock, ReplyEvent } from "../../protocols/canonical/types.ts";
import { type TokenCounter, tokenPieces } from "../../o200k/mod.ts";
import type { PlannedAnswer } from "./plan_answer.ts";
import { signReasoning } from "./thinking.ts";

/** Limits of an answer, and the prompt tokens of its usage. */
export interface EmitLimits {
  /** Tokens of the answer, reasoning included. */
  maxTokens: number;
  stop: readonly string[];
  inputTokens: number;
}

/** An event. At `undefined` the caller should yield to the event loop. */
type Step = ReplyEvent | undefined;

/**
 * Emits the events of an answer, one token per delta. The tokens of a block are those of its text; those of a call are
 * those of its names and arguments. A character or a call that does not fit completely is left out. Hidden reasoning
 * counts, too.
 */
export function* emitAnswer(
  planned: PlannedAnswer,
  limits: EmitLimits,
  counter: TokenCounter,
): Generator<Step, void, undefined> {
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
    const emitted = yield* emitText(text, { index, block, room: left, silent: hidden }, counter);
    left -= emitted.tokens;
    reasoning = emitted.tokens;
    if (emitted.text !== "") yield { type: "close", index: index++, signature: signReasoning(emitted.text) };
    if (!emitted.isComplete) return yield finish("length");
  }

  const stop = firstStop(planned.text, limits.stop);
  const emitted = yield* emitText(
    planned.text.slice(0, stop?.at),
    { index, block: { type: "text" }, room: left },
    counter,
  );
  left -= emitted.tokens;
  if (emitted.text !== "") yield { type: "close", index: index++ };
  if (!emitted.isComplete) return yield finish("length");
  if (stop !== undefined) return yield finish("stop_sequence", stop.sequence);

  for (const { type, id, name, arguments: input, custom, namespace } of planned.calls) {
    const names = counter.count(name) + counter.count(namespace ?? "");
    const written = yield* collectTokens(input, left - names, counter);
    if (written === undefined) return yield finish("length");
    left -= names + written.tokens;
    const open = { type, id, name, ...(custom && { custom }), ...(namespace !== undefined && { namespace }) };
    yield { type: "open", index, block: open };
    for (const text of written.texts) yield { type: "delta", index, text };
    yield { type: "close", index: index++ };
  }
  yield finish(planned.calls.length > 0 ? "tool_use" : "end");
}

interface EmittedText {
  text: string;
  tokens: number;
  /** False if the text was cut. */
  isComplete: boolean;
}

/** Emits as much of a text as there is room for. The block opens at its first token, and is not closed. */
function* emitText(
  text: string,
  { index, block, room, silent = false }: { index: number; block: OpenBlock; room: number; silent?: boolean },
  counter: TokenCounter,
): Generator<Step, EmittedText, undefined> {
  let emitted = "";
  let tokens = 0;
  for (const piece of tokenPieces(text, counter)) {
    if (piece === undefined) {
      yield undefined;
      continue;
    }
    if (tokens + piece.tokens > room) return { text: emitted, tokens, isComplete: false };
    if (emitted === "") yield { type: "open", index, block };
    emitted += piece.text;
    tokens += piece.tokens;
    if (!silent) yield { type: "delta", index, text: piece.text };
  }
  return { text: emitted, tokens, isComplete: true };
}

/** Returns the texts of all tokens of a text; `undefined` if there is not enough room for them. */
function* collectTokens(
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

/** Finds the earliest stop sequence in a text. At the same position, the first of the list counts. */
function firstStop(text: string, stop: readonly string[]): { at: number; sequence: string } | undefined {
  let first: { at: number; sequence: string } | undefined;
  for (const sequence of stop) {
    const at = sequence === "" ? -1 : text.indexOf(sequence);
    if (at >= 0 && (first === undefined || at < first.at)) first = { at, sequence };
  }
  return first;
}
