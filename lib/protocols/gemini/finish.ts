/** Why an answer ended, in the vendor's words. */
import type { FinishReason } from "../../canonical/types.ts";
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

/** The model tried to call a tool and failed. What it said before is no answer; another try may succeed. */
const FAILED_CALLS: ReadonlySet<string> = new Set([
  "MALFORMED_FUNCTION_CALL",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
]);

/**
 * Reads a `finishReason`. With complete calls every ordinary end is `tool_use`, a refusal too: the client waits for them
 * to be answered.
 * @param said how many blocks the answer has, and how many of them are calls
 * @throws {GatewayError} `upstream`, where the reason means that there is no answer: a failed call; `OTHER` and reasons
 * that are not known here only where nothing was said
 */
export function readFinish(reason: string, said: { blocks: number; calls: number }): FinishReason {
  if (FAILED_CALLS.has(reason)) {
    throw new GatewayError("upstream", `The model made a call that cannot be used (${reason})`);
  }
  if (reason === "MAX_TOKENS" || reason === "CONTINUATION") return "length";
  if (said.calls > 0) return "tool_use";
  if (REFUSALS.has(reason)) return "refusal";
  if (reason !== "STOP" && said.blocks === 0) {
    throw new GatewayError("upstream", "The model gave no answer and no usable reason");
  }
  return "end";
}
