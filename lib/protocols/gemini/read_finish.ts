import type { FinishReason } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";

const REFUSALS: ReadonlySet<string> = new Set([
  "SAFETY",
  "RECITATION",
  "LANGUAGE",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION",
]);

/** A failed tool call: the answer ends there and was billed. */
const FAILED_CALLS: ReadonlySet<string> = new Set([
  "MALFORMED_FUNCTION_CALL",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
]);

/**
 * Reads a `finishReason`. With complete calls every ordinary end is `tool_use`, even a refusal, because the client
 * waits for them. A failed call ends an incomplete answer, so it becomes `length`.
 * @param counts number of blocks, and of calls among them
 * @throws {GatewayError} `upstream`, if there is no answer: a malformed call, `OTHER` and unknown reasons without
 * content
 */
export function readFinish(reason: string, counts: { blocks: number; calls: number }): FinishReason {
  if (reason === "MAX_TOKENS" || reason === "CONTINUATION") return "length";
  if (counts.calls > 0) return "tool_use";
  if (reason === "MALFORMED_FUNCTION_CALL" && counts.blocks === 0) {
    throw new GatewayError("upstream", "The model returned only a malformed function call");
  }
  if (FAILED_CALLS.has(reason)) return "length";
  if (REFUSALS.has(reason)) return "refusal";
  if (reason !== "STOP" && counts.blocks === 0) {
    throw new GatewayError("upstream", "The model returned neither content nor a known finish reason");
  }
  return "end";
}
