/** Why an answer ended, in the vendor's words. */
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

/** The model tried to call a tool and failed: what it said before is all there is of its answer, and was billed. */
const FAILED_CALLS: ReadonlySet<string> = new Set([
  "MALFORMED_FUNCTION_CALL",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
]);

/**
 * Reads a `finishReason`. With complete calls every ordinary end is `tool_use`, a refusal too: the client waits for them
 * to be answered. A call that failed ends an answer that is not whole, as `length` says.
 * @param said how many blocks the answer has, and how many of them are calls
 * @throws {GatewayError} `upstream`, where the reason means that there is no answer: `OTHER` and reasons that are not
 * known here, where nothing was said
 */
export function readFinish(reason: string, said: { blocks: number; calls: number }): FinishReason {
  if (reason === "MAX_TOKENS" || reason === "CONTINUATION") return "length";
  if (said.calls > 0) return "tool_use";
  if (FAILED_CALLS.has(reason)) return "length";
  if (REFUSALS.has(reason)) return "refusal";
  if (reason !== "STOP" && said.blocks === 0) {
    throw new GatewayError("upstream", "The model gave no answer and no usable reason");
  }
  return "end";
}
