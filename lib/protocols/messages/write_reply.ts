/** Writes answers of the messages protocol that are not streamed, and parts that streamed answers have, too. */
import { inputOf } from "../canonical/tool_input.ts";
import { isRedacted, writeSignature } from "../canonical/signature.ts";
import type { ContentBlock, ContentBlockOf, FinishReason, Reply, TokenUsage } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { ResponseContext } from "../codec.ts";

const STOP_REASONS: Readonly<Record<FinishReason, string>> = {
  end: "end_turn",
  stop_sequence: "stop_sequence",
  length: "max_tokens",
  tool_use: "tool_use",
  refusal: "refusal",
  pause: "pause_turn",
};

/** Writes a message object. */
export function writeReply(reply: Reply, context: ResponseContext): JsonObject {
  const omitsText = omitsThinking(context);
  const hasRefusal = reply.blocks.some((block) => block.type === "refusal" && block.text !== "");
  return {
    ...writeHead(context),
    content: reply.blocks.map((block) => writeBlock(block, omitsText)).filter((block) => block !== undefined),
    ...writeStop(reply.finish, { stopSequence: reply.stopSequence, refused: hasRefusal }),
    usage: writeUsage(reply.usage),
  };
}

/** Returns the members of a message before its content. */
export function writeHead({ requestId, model }: ResponseContext): JsonObject {
  return { id: `msg_${requestId}`, type: "message", role: "assistant", model };
}

/** Writes the finish reason. It is `refusal` for a refusal that an upstream reported as an ordinary end. */
export function writeStop(
  reason: FinishReason,
  { stopSequence, refused }: { stopSequence: string | undefined; refused: boolean },
): JsonObject {
  return {
    stop_reason: reason === "end" && refused ? STOP_REASONS.refusal : STOP_REASONS[reason],
    stop_sequence: stopSequence ?? null,
  };
}

/** True if the client asked for thinking blocks without their text. */
export function omitsThinking({ prompt }: ResponseContext): boolean {
  return prompt.reasoning?.display === "omitted";
}

/** Writes a block; undefined if it is empty, because the client would send it back, and the vendor refuses that. */
function writeBlock(block: ContentBlock, omitsText: boolean): JsonObject | undefined {
  switch (block.type) {
    case "text":
      return writeText(block);
    case "refusal":
      return block.text === "" ? undefined : { type: "text", text: block.text };
    case "reasoning":
      return writeReasoning(block, omitsText);
    case "tool_call":
      return { type: "tool_use", id: block.id, name: block.name, input: inputOf(block) };
    case "vendor_specific":
      return block.from === "messages" ? block.value : undefined;
    default:
      return undefined;
  }
}

/** Writes text with the citations of this protocol; it has no form for others. */
function writeText({ text, citations = [] }: ContentBlockOf<"text">): JsonObject | undefined {
  const own = citations.filter(({ from }) => from === "messages").map(({ value }) => value);
  if (text === "" && own.length === 0) return undefined;
  return own.length === 0 ? { type: "text", text } : { type: "text", text, citations: own };
}

function writeReasoning(block: ContentBlockOf<"reasoning">, omitsText: boolean): JsonObject | undefined {
  const signature = block.signature === undefined ? "" : writeSignature(block.signature, "anthropic");
  if (isRedacted(block.signature)) return { type: "redacted_thinking", data: signature };
  const thinking = omitsText || block.hidden === true ? "" : block.text;
  return thinking === "" && signature === "" ? undefined : { type: "thinking", thinking, signature };
}

/**
 * Writes the usage. Clients add up the counts of input and output, so unknown ones are 0. An unknown count of reasoning
 * is omitted.
 */
export function writeUsage(usage: TokenUsage): JsonObject {
  const fiveMinutes = usage.input_cache_write_5m ?? 0;
  const hour = usage.input_cache_write_1h ?? 0;
  return {
    input_tokens: usage.prompt ?? 0,
    cache_creation_input_tokens: fiveMinutes + hour,
    cache_read_input_tokens: usage.input_cache_read ?? 0,
    cache_creation: { ephemeral_5m_input_tokens: fiveMinutes, ephemeral_1h_input_tokens: hour },
    output_tokens: usage.completion ?? 0,
    ...(usage.reasoning !== undefined && { output_tokens_details: { thinking_tokens: usage.reasoning } }),
    service_tier: usage.tiers?.includes("priority") === true ? "priority" : "standard",
  };
}

/**
 * Writes the usage at the start. It has cache writes by lifetime only if they are known: SDKs replace the other counts
 * by those at the end, but not these.
 */
export function writeStartUsage(usage: TokenUsage): JsonObject {
  const known = usage.input_cache_write_5m !== undefined || usage.input_cache_write_1h !== undefined;
  return known ? writeUsage(usage) : { ...writeUsage(usage), cache_creation: null };
}
