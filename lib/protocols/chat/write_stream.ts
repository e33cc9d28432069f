/** Writes streamed chat answers. */
import type { Machine, ReplyEvent, TokenUsage } from "../canonical/types.ts";
import { cutAnswerError, type GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { Frame, ResponseContext } from "../codec.ts";
import { openaiError } from "../error_bodies.ts";
import { deltaWriter } from "./write_deltas.ts";
import { completionId, writeFinish } from "./write_reply.ts";
import { writeUsage } from "./chat_usage.ts";

/** Creates a writer of chunks. A stream that breaks off ends with an error and without `[DONE]`. */
export function streamWriter(context: ResponseContext): Machine<ReplyEvent, Frame> {
  const chunks = chunkWriter(context);
  const message = deltaWriter(context);
  const includeUsage = context.prompt.includeUsage === true;
  let isOver = false;

  function finish({ reason, usage }: Extract<ReplyEvent, { type: "finish" }>): Frame[] {
    isOver = true;
    const { before, last } = message.finish();
    return [
      ...before.map((delta) => chunks.delta(delta)),
      chunks.delta(last, writeFinish(reason, context)),
      ...(includeUsage ? [chunks.usage(usage)] : []),
      { data: "[DONE]" },
    ];
  }

  function fail(error: GatewayError): Frame[] {
    isOver = true;
    return [{ data: JSON.stringify({ error: openaiError(error) }) }];
  }

  return {
    push(event) {
      if (isOver) return [];
      switch (event.type) {
        case "finish":
          return finish(event);
        case "error":
          return fail(event.error);
        default:
          return message.push(event).map((delta) => chunks.delta(delta));
      }
    },
    end() {
      return isOver ? [] : fail(cutAnswerError());
    },
  };
}

/**
 * Creates a writer that wraps deltas into chunks. The text around the deltas is always the same, so it is made once.
 */
function chunkWriter(context: ResponseContext): {
  delta(delta: JsonObject, finish?: string): Frame;
  usage(usage: TokenUsage): Frame;
} {
  const head = JSON.stringify({
    id: completionId(context),
    object: "chat.completion.chunk",
    created: context.createdAt,
    model: context.model,
  }).slice(0, -1);
  const tail = context.prompt.includeUsage === true ? `}],"usage":null}` : `}]}`;
  return {
    delta(delta, finish) {
      const reason = finish === undefined ? "null" : JSON.stringify(finish);
      const choice = `{"index":0,"delta":${JSON.stringify(delta)},"logprobs":null,"finish_reason":${reason}`;
      return { data: `${head},"choices":[${choice}${tail}` };
    },
    usage: (usage) => ({ data: `${head},"choices":[],"usage":${JSON.stringify(writeUsage(usage))}}` }),
  };
}
