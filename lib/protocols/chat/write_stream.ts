/** Writes streamed chat answers. */
import { answerWriter } from "../canonical/finish.ts";
import type { Machine, ReplyEvent, TokenLogprob, TokenUsage } from "../canonical/types.ts";
import { addTokens } from "../canonical/logprobs.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { Frame, ResponseContext } from "../codec.ts";
import { openaiError } from "../error_bodies.ts";
import { deltaWriter } from "./write_deltas.ts";
import { completionId, writeFinish, writeLogprobs } from "./write_reply.ts";
import { writeUsage } from "./chat_usage.ts";

/** Creates a writer of chunks. A stream that breaks off ends with an error and without `[DONE]`. */
export function streamWriter(context: ResponseContext): Machine<ReplyEvent, Frame> {
  const chunks = chunkWriter(context);
  const message = deltaWriter(context);
  const includeUsage = context.prompt.includeUsage === true;
  /** Tokens of the delta that follows. */
  let tokens: TokenLogprob[] = [];

  function delta(event: Parameters<typeof message.push>[0]): Frame[] {
    const deltas = message.push(event);
    if (event.type !== "delta" || tokens.length === 0) return deltas.map((delta) => chunks.delta(delta));
    const last = deltas.length - 1;
    const logprobs = writeLogprobs(tokens);
    tokens = [];
    return deltas.map((delta, index) => chunks.delta(delta, index === last ? { logprobs } : undefined));
  }

  function finish({ reason, usage }: Extract<ReplyEvent, { type: "finish" }>): Frame[] {
    const { before, last } = message.finish();
    return [
      ...before.map((delta) => chunks.delta(delta)),
      chunks.delta(last, { finish: writeFinish(reason, context) }),
      ...(includeUsage ? [chunks.usage(usage)] : []),
      { data: "[DONE]" },
    ];
  }

  return answerWriter((event) => {
    switch (event.type) {
      case "finish":
        return finish(event);
      case "error":
        return [{ data: JSON.stringify({ error: openaiError(event.error) }) }];
      case "logprobs":
        addTokens(tokens, event.tokens);
        return [];
      default:
        return delta(event);
    }
  });
}

/**
 * Creates a writer that wraps deltas into chunks. The text around the deltas is always the same, so it is made once.
 */
function chunkWriter(context: ResponseContext): {
  delta(delta: JsonObject, more?: { finish?: string; logprobs?: JsonObject | null }): Frame;
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
    delta(delta, more) {
      const others = more === undefined
        ? `"logprobs":null,"finish_reason":null`
        : `"logprobs":${JSON.stringify(more.logprobs ?? null)},"finish_reason":${JSON.stringify(more.finish ?? null)}`;
      const choice = `{"index":0,"delta":${JSON.stringify(delta)},${others}`;
      return { data: `${head},"choices":[${choice}${tail}` };
    },
    usage: (usage) => ({ data: `${head},"choices":[],"usage":${JSON.stringify(writeUsage(usage))}}` }),
  };
}
