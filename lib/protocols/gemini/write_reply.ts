/** Writes answers of Gemini's protocol that are not streamed, and parts that streamed answers have, too. */
import { eventsOf } from "../canonical/aggregate_events.ts";
import type { FinishReason, Reply } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { ResponseContext } from "../codec.ts";
import { writeUsage } from "./gemini_usage.ts";
import { PartWriter } from "./write_parts.ts";

const FINISH_REASONS: Readonly<Record<FinishReason, string>> = {
  end: "STOP",
  stop_sequence: "STOP",
  length: "MAX_TOKENS",
  tool_use: "STOP",
  refusal: "SAFETY",
  pause: "STOP",
};

/** Writes a `GenerateContentResponse`. */
export function writeReply(reply: Reply, context: ResponseContext): JsonObject {
  const writer = new PartWriter(context.prompt);
  const parts = eventsOf(reply).flatMap((event) => writer.push(event));
  const finishReason = writeFinish(reply.finish, writer.refused);
  return {
    candidates: [{ ...writeContent(joinTexts(parts)), finishReason, index: 0 }],
    usageMetadata: writeUsage(reply.usage),
    ...writeHead(context),
  };
}

/** Returns the members that every piece of an answer has. */
export function writeHead({ requestId, model }: ResponseContext): JsonObject {
  return { modelVersion: model, responseId: requestId };
}

/** Returns the content of a candidate, for spreading. Clients expect at least one part. */
export function writeContent(parts: readonly JsonObject[]): JsonObject {
  return { content: { parts: parts.length > 0 ? [...parts] : [{ text: "" }], role: "model" } };
}

/** Writes the finish reason. It is `SAFETY` for a refusal that an upstream reported as an ordinary end. */
export function writeFinish(reason: FinishReason, refused: boolean): string {
  return reason === "end" && refused ? FINISH_REASONS.refusal : FINISH_REASONS[reason];
}

/** Joins adjacent texts, and adjacent thoughts. A text with a signature begins another part. */
function joinTexts(parts: readonly JsonObject[]): JsonObject[] {
  const joined: JsonObject[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    const isText = typeof part.text === "string" && part.thoughtSignature === undefined;
    if (isText && typeof last?.text === "string" && last.thought === part.thought) last.text += part.text;
    else joined.push({ ...part });
  }
  return joined;
}
