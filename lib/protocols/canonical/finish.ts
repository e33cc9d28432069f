/** Makes the last event of an answer, and corrects its finish reason. */
import type { FinishReason, ReplyEvent, TokenUsage } from "./types.ts";

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
