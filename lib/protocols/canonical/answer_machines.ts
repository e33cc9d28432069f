/** State machines that read or write one answer, up to its `finish` or `error` event. */
import { cutAnswerError, toGatewayError } from "../../errors.ts";
import type { Machine, ReplyEvent } from "./types.ts";

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

  function pass(events: ReplyEvent[]): ReplyEvent[] {
    isOver = isEnd(events.at(-1));
    return events;
  }

  function fail(thrown: unknown): ReplyEvent[] {
    return pass([...steps.unsent?.() ?? [], { type: "error", error: toGatewayError(thrown) }]);
  }

  return {
    push(piece) {
      if (isOver) return [];
      try {
        return pass(steps.read(piece));
      } catch (thrown) {
        return fail(thrown);
      }
    },
    end() {
      if (isOver) return [];
      try {
        return pass(steps.end());
      } catch (thrown) {
        return fail(thrown);
      }
    },
  };
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
