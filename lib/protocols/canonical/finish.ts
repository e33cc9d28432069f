/** Makes the last event of an answer, corrects its finish reason, and ends reading and writing there. */
import { cutAnswerError, toGatewayError } from "../../errors.ts";
import type { FinishReason, Machine, ReplyEvent, TokenUsage } from "./types.ts";

/** Returns the corrected reason: it is `tool_use` exactly if there is a call, unless the answer was cut by `length`. */
export function settledReason(reason: FinishReason, hasCalls: boolean): FinishReason {
  if (reason === "length") return reason;
  if (hasCalls) return "tool_use";
  return reason === "tool_use" ? "end" : reason;
}

/** Returns the last event of an answer. It has a stop sequence only if that is the reason. */
export function finishEvent(
  reason: FinishReason,
  { stopSequence, usage }: { stopSequence?: string | undefined; usage: TokenUsage },
): Extract<ReplyEvent, { type: "finish" }> {
  return {
    type: "finish",
    reason,
    ...(reason === "stop_sequence" && stopSequence !== undefined && { stopSequence }),
    usage,
  };
}

/** Reads the chunks of an answer in one protocol. */
export interface AnswerSteps<Piece> {
  /** Returns the events of a chunk. @throws the error that ends the answer */
  read(piece: Piece): ReplyEvent[];
  /** Returns the events at the end of the upstream's stream. @throws as `read` */
  end(): ReplyEvent[];
  /** Returns the events that were read before an error was thrown; absent: there are none. */
  unsent?(): ReplyEvent[];
}

/** Creates the reader of an answer. It reads nothing after the end of the answer. */
export function answerReader<Piece>(steps: AnswerSteps<Piece>): Machine<Piece, ReplyEvent> {
  let isOver = false;

  function run(step: () => ReplyEvent[]): ReplyEvent[] {
    if (isOver) return [];
    let events: ReplyEvent[];
    try {
      events = step();
    } catch (thrown) {
      events = [...steps.unsent?.() ?? [], { type: "error", error: toGatewayError(thrown) }];
    }
    isOver = isEnd(events.at(-1));
    return events;
  }

  return { push: (piece) => run(() => steps.read(piece)), end: () => run(() => steps.end()) };
}

/**
 * Creates the writer of an answer. It writes nothing after the end of the answer. An answer without an end is an error.
 */
export function answerWriter<Out>(write: (event: ReplyEvent) => Out[]): Machine<ReplyEvent, Out> {
  let isOver = false;

  function push(event: ReplyEvent): Out[] {
    if (isOver) return [];
    isOver = isEnd(event);
    return write(event);
  }

  return { push, end: () => push({ type: "error", error: cutAnswerError() }) };
}

function isEnd(event: ReplyEvent | undefined): boolean {
  return event?.type === "finish" || event?.type === "error";
}
