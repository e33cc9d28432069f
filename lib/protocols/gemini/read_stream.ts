/** Reads streamed answers. The answer ends with the stream. */
import type { Machine, ReplyEvent } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, JsonError, parseJson } from "../../json/mod.ts";
import type { Frame } from "../codec.ts";
import { valueOf } from "../long_frame.ts";
import type { Origin } from "../upstream_codec.ts";
import { replyReader } from "./read_reply.ts";
import { readError } from "./read_error.ts";

/** Some Gemini-compatible servers end their streams with it. */
const DONE = "[DONE]";

/** Reads a stream with `alt=sse`. The events always obey the grammar. */
export function streamReader(origin: Origin): Machine<Frame, ReplyEvent> {
  const answer = replyReader(origin);
  let isOver = false;

  function fail(error: GatewayError): ReplyEvent[] {
    isOver = true;
    return [{ type: "error", error }];
  }

  function readPiece(piece: Json): ReplyEvent[] {
    if (isOver) return [];
    if (!isObject(piece)) return fail(new GatewayError("upstream", "The upstream sent a chunk that is not an object"));
    const events = answer.push(piece);
    isOver = events.at(-1)?.type === "error";
    return events;
  }

  return {
    push(frame) {
      const { event, data } = frame;
      if (isOver || data.trim() === "" || data === DONE) return [];
      let value: Json | undefined;
      let cause: unknown;
      try {
        value = valueOf(frame, parseJson);
      } catch (error) {
        if (!(error instanceof JsonError)) throw error;
        cause = error;
      }
      if (value === undefined) {
        return fail(new GatewayError("upstream", "The upstream sent a chunk that is not JSON", { cause }));
      }
      if (event === "error" && isObject(value) && value.error === undefined) return fail(readError(500, value));
      // Some errors come in an array.
      return Array.isArray(value) ? value.flatMap(readPiece) : readPiece(value);
    },
    end() {
      if (isOver) return [];
      isOver = true;
      return answer.end();
    },
  };
}
