/** What is said around a fault: the same short text each time, in canonical events. */
import type { Event, Prompt, Usage } from "../protocols/canonical/types.ts";
import type { Fault } from "./faults.ts";

/** Pieces of the usual text. */
const PIECES = 10;
/** Text of one piece of an endless answer, and of a long one. */
const LONG = "All work and no play makes a dull proxy. ";

/** What the user said last, in text. */
export function lastText({ messages }: Pick<Prompt, "messages">): string {
  const last = messages.findLast(({ role }) => role === "user");
  return (last?.blocks ?? []).flatMap((block) => block.type === "text" ? [block.text] : []).join("\n");
}

/** The events of an answer: a start, deltas, a finish. The answer to `endless` never ends. */
export function* said(fault: Fault | undefined): Generator<Event, void, undefined> {
  const usage: Usage = { prompt: 10 };
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

function usageOf(fault: Fault | undefined, count: number): Usage {
  switch (fault?.name) {
    case "no-usage":
      return {};
    case "wrong-usage":
      return { prompt: -5, completion: 1e15 };
    default:
      return { prompt: 10, completion: count };
  }
}

function* pieces(fault: Fault | undefined): Generator<string, void, undefined> {
  const most = fault?.name === "endless" ? Infinity : Math.max(PIECES, (fault?.after ?? 0) + 1);
  // Sizes that no string can have are written by whoever has a socket.
  if (fault?.name === "long-line") yield LONG.repeat(Math.ceil(Math.min(fault.bytes ?? 0, 2 ** 28) / LONG.length));
  // Characters of two and of four bytes, for pieces that end within one.
  for (let number = 1; number <= most; number++) yield fault?.name === "endless" ? LONG : `wörd ${number} 🙂 `;
}
