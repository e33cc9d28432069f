/** The answer that a fault disturbs: a short constant text, as canonical events. */
import type { Prompt, ReplyEvent, TokenUsage } from "../protocols/canonical/types.ts";
import { faultOfModel, type FaultScope, findFault, type RequestedFault } from "./faults.ts";

/** Number of text pieces in an answer without a fault. */
const PIECE_COUNT = 10;
/** The text of each piece of an endless answer. A long line repeats it. */
const SENTENCE = "All work and no play makes a dull proxy. ";

/** Returns the fault requested by the last user message, else by the model id; `undefined` for none. */
export function requestedFault(
  { messages }: Pick<Prompt, "messages">,
  { model, scope }: { model: string; scope: FaultScope },
): RequestedFault | undefined {
  const last = messages.findLast(({ role }) => role === "user");
  const text = (last?.blocks ?? []).flatMap((block) => block.type === "text" ? [block.text] : []).join("\n");
  return findFault(text, scope) ?? faultOfModel(model, scope);
}

/**
 * Yields the events of an answer: a start, one text block in pieces, and a finish. With the fault `endless`, the pieces
 * never end.
 */
export function* answerEvents(fault: RequestedFault | undefined): Generator<ReplyEvent, void, undefined> {
  const usage: TokenUsage = { prompt: 10 };
  yield { type: "start", ...(fault?.name !== "no-usage" && { usage }) };
  yield { type: "open", index: 0, block: { type: "text" } };
  let count = 0;
  for (const text of pieces(fault)) {
    count++;
    yield { type: "delta", index: 0, text };
  }
  yield { type: "close", index: 0 };
  yield { type: "finish", reason: "end", usage: usageOf(fault, count) };
}

/** Returns the token counts of the finish: with some faults none, or impossible ones. */
function usageOf(fault: RequestedFault | undefined, count: number): TokenUsage {
  switch (fault?.name) {
    case "no-usage":
      return {};
    case "wrong-usage":
      return { prompt: -5, completion: 1e15 };
    default:
      return { prompt: 10, completion: count };
  }
}

function* pieces(fault: RequestedFault | undefined): Generator<string, void, undefined> {
  const count = fault?.name === "endless" ? Infinity : Math.max(PIECE_COUNT, (fault?.after ?? 0) + 1);
  // The server itself writes lines that exceed the maximum string length.
  if (fault?.name === "long-line") {
    yield SENTENCE.repeat(Math.ceil(Math.min(fault.bytes ?? 0, 2 ** 28) / SENTENCE.length));
  }
  // Characters of two and four bytes, so that chunks may end within one.
  for (let number = 1; number <= count; number++) yield fault?.name === "endless" ? SENTENCE : `wörd ${number} 🙂 `;
}
