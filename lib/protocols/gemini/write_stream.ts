/** Writes streamed answers of Gemini's protocol. Each piece has the form of a whole answer. */
import { answerWriter } from "../canonical/finish.ts";
import type { Machine, ReplyEvent } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { Frame, ResponseContext } from "../codec.ts";
import { googleError } from "../error_bodies.ts";
import { writeUsage } from "./gemini_usage.ts";
import { PartWriter } from "./write_parts.ts";
import { writeContent, writeFinish, writeHead } from "./write_reply.ts";

/**
 * Creates a writer of the pieces of an answer. The last piece has content, the finish reason and the usage: chats of
 * Google's SDKs discard an answer that has a piece without content. So a part waits until the next part comes or the
 * next block opens.
 */
export function streamWriter(context: ResponseContext): Machine<ReplyEvent, Frame> {
  const writer = new PartWriter(context.prompt);
  const head = writeHead(context);
  const held: JsonObject[] = [];

  function piece(parts: readonly JsonObject[], end: JsonObject = {}): JsonObject {
    return { candidates: [{ ...writeContent(parts), ...end, index: 0 }] };
  }

  function release(): Frame[] {
    return held.splice(0).map((part) => frame({ ...piece([part]), ...head }));
  }

  return answerWriter((event) => {
    if (event.type === "error") return [...release(), frame({ error: googleError(event.error) })];
    const parts = writer.push(event);
    if (event.type === "finish") {
      const last = piece([...held, ...parts], { finishReason: writeFinish(event.reason, writer.refused) });
      return [frame({ ...last, usageMetadata: writeUsage(event.usage), ...head })];
    }
    const frames = parts.length > 0 || event.type === "open" ? release() : [];
    held.push(...parts);
    return frames;
  });
}

function frame(members: JsonObject): Frame {
  return { data: JSON.stringify(members) };
}
