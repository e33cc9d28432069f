/** Writes streamed answers. Each piece has the form of a whole answer. */
import type { Machine, ReplyEvent } from "../canonical/types.ts";
import { cutAnswerError, type GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { Echo, Frame } from "../codec.ts";
import { googleError } from "../error_bodies.ts";
import { writeUsage } from "./gemini_usage.ts";
import { PartWriter } from "./write_parts.ts";
import { writeContent, writeFinish, writeHead } from "./write_reply.ts";

/**
 * Writes the pieces of an answer. The last one has content, the finish reason and the usage: chats of Google's SDKs forget
 * an answer that has a piece without content. So a part waits until the next event that brings or opens another one.
 */
export function streamWriter(echo: Echo): Machine<ReplyEvent, Frame> {
  const writer = new PartWriter(echo.prompt);
  const head = writeHead(echo);
  let isDone = false;
  const queued: JsonObject[] = [];

  function piece(parts: readonly JsonObject[], end: JsonObject = {}): JsonObject {
    return { candidates: [{ ...writeContent(parts), ...end, index: 0 }] };
  }

  function release(): Frame[] {
    return queued.splice(0).map((part) => frame({ ...piece([part]), ...head }));
  }

  function fail(error: GatewayError): Frame[] {
    isDone = true;
    return [...release(), frame({ error: { ...googleError(error) } })];
  }

  return {
    push(event) {
      if (isDone) return [];
      if (event.type === "error") return fail(event.error);
      const parts = writer.push(event);
      if (event.type === "finish") {
        isDone = true;
        const last = piece([...queued, ...parts], { finishReason: writeFinish(event.reason, writer.refused) });
        return [frame({ ...last, usageMetadata: writeUsage(event.usage), ...head })];
      }
      const frames = parts.length > 0 || event.type === "open" ? release() : [];
      queued.push(...parts);
      return frames;
    },
    end() {
      return isDone ? [] : fail(cutAnswerError());
    },
  };
}

function frame(members: JsonObject): Frame {
  return { data: JSON.stringify(members) };
}
