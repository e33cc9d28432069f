/** Writes chat answers that are not streamed, and parts that streamed answers have, too. */
import { countCodePoints, moveAnnotation, urlCitation } from "../canonical/citations.ts";
import { signedCallId, writeSignature } from "../canonical/signature.ts";
import type { Citation, FinishReason, Reply, Signature, TextRange, TokenLogprob } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { ResponseContext } from "../codec.ts";
import { writeCall } from "./write_parts.ts";
import { writeDetails } from "./reasoning_details.ts";
import { usesLegacyFunctions } from "./read_tools.ts";
import { writeUsage } from "./chat_usage.ts";

/** Writes a `chat.completion` object. */
export function writeReply(reply: Reply, context: ResponseContext): JsonObject {
  return {
    id: completionId(context),
    object: "chat.completion",
    created: context.createdAt,
    model: context.model,
    choices: [{
      index: 0,
      message: writeMessage(reply, context),
      logprobs: writeLogprobs(reply.blocks.flatMap((block) => block.type === "text" ? block.logprobs ?? [] : [])),
      finish_reason: writeFinish(reply.finish, context),
    }],
    usage: writeUsage(reply.usage),
  };
}

/** Writes the log probabilities of a text; null if there are none. */
export function writeLogprobs(tokens: readonly TokenLogprob[]): JsonObject | null {
  return tokens.length === 0 ? null : { content: [...tokens], refusal: null };
}

/** Returns the id of the completion, which is the same on every chunk. */
export function completionId(context: ResponseContext): string {
  return `chatcmpl-${context.requestId}`;
}

/** Returns chat's finish reason, which is the same for a stop sequence and for the end of the answer. */
export function writeFinish(reason: FinishReason, context: ResponseContext): string {
  switch (reason) {
    case "end":
    case "stop_sequence":
    case "pause":
      return "stop";
    case "length":
      return "length";
    case "tool_use":
      return usesLegacyFunctions(context.request) ? "function_call" : "tool_calls";
    case "refusal":
      return "content_filter";
  }
}

/** True if the client does not want reasoning text. It still gets the signatures, to send them back. */
export function hidesReasoning(context: ResponseContext): boolean {
  return context.prompt.reasoning?.display === "omitted";
}

/** Writes the text of reasoning, for spreading. Clients of OpenRouter read only `reasoning`. */
export function writeReasoningText(text: string, { prompt }: ResponseContext): JsonObject {
  return { reasoning_content: text, ...(prompt.openRouter === true && { reasoning: text }) };
}

/**
 * Writes a citation of a text block; undefined if it has no URL.
 * @param block range of the block in the whole text of the answer, in which positions are counted
 */
export function writeAnnotation(citation: Citation, block: TextRange): JsonObject | undefined {
  if (citation.from === "chat") return moveAnnotation(citation.value, block.start);
  const cited = urlCitation(citation, block);
  return cited && { type: "url_citation", url_citation: cited };
}

/**
 * Adds the signature of a call that follows to the signatures by call id, in an envelope. It is written beside the call,
 * as Google's OpenAI-compatible endpoint does, because many clients send back the calls but not `reasoning_details`.
 */
export function keepCallSignature(signature: Signature | undefined, signatures: Map<string, string>): void {
  const callId = signedCallId(signature?.id);
  if (signature !== undefined && callId !== undefined) signatures.set(callId, writeSignature(signature, ""));
}

function writeMessage(reply: Reply, context: ResponseContext): JsonObject {
  let content = "";
  let refusal = "";
  const thoughts: string[] = [];
  const details: JsonObject[] = [];
  const annotations: JsonObject[] = [];
  const calls: JsonObject[] = [];
  const signatures = new Map<string, string>();
  const isCited = reply.blocks.some((block) => block.type === "text" && block.citations !== undefined);
  /** Code points of the content, counted only for citations. */
  let end = 0;
  for (const block of reply.blocks) {
    switch (block.type) {
      case "text": {
        const start = end;
        content += block.text;
        if (isCited) end += countCodePoints(block.text);
        for (const citation of block.citations ?? []) {
          const annotation = writeAnnotation(citation, { start, end });
          if (annotation !== undefined) annotations.push(annotation);
        }
        break;
      }
      case "refusal":
        refusal += block.text;
        break;
      case "reasoning": {
        const visible = hidesReasoning(context) ? { ...block, text: "" } : block;
        if (visible.text !== "") thoughts.push(visible.text);
        details.push(...writeDetails(visible, details.length));
        keepCallSignature(block.signature, signatures);
        break;
      }
      case "tool_call":
        calls.push(writeCall(block, signatures.get(block.id)));
        break;
    }
  }
  const hasNoText = content === "" && (calls.length > 0 || refusal !== "");
  return {
    role: "assistant",
    content: hasNoText ? null : content,
    refusal: refusal === "" ? null : refusal,
    ...(thoughts.length > 0 && writeReasoningText(thoughts.join("\n\n"), context)),
    ...(details.length > 0 && { reasoning_details: details }),
    ...(annotations.length > 0 && { annotations }),
    ...(calls.length > 0 &&
      (usesLegacyFunctions(context.request) ? { function_call: calls[0]?.function } : { tool_calls: calls })),
  };
}
