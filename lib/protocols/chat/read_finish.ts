/** Why an answer ended, in the words of many vendors. */
import type { FinishReason } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import { stringOf } from "../members.ts";

/** A reason, with the string that was met where the upstream names it. */
export interface ChatFinish {
  reason: FinishReason;
  stopSequence?: string;
}

/** Words that are not "the answer is over". */
const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["length", "length"],
  ["max_tokens", "length"],
  // Mistral: the context is full.
  ["model_length", "length"],
  ["tool_calls", "tool_use"],
  ["function_call", "tool_use"],
  ["tool_use", "tool_use"],
  ["content_filter", "refusal"],
  // GLM.
  ["sensitive", "refusal"],
]);

/** Words for an answer that failed: OpenRouter and Mistral, vLLM, DeepSeek, GLM. */
const FAILURES: ReadonlySet<string> = new Set(["error", "abort", "insufficient_system_resource", "network_error"]);

/**
 * Reads the reason of a choice; `undefined` while there is none. Words nobody knows are the ordinary end.
 * @throws {GatewayError} `upstream`, where the reason is a failure
 */
export function readFinish(choice: JsonObject): ChatFinish | undefined {
  const word = stringOf(choice.finish_reason);
  if (!word) return undefined;
  if (FAILURES.has(word)) throw new GatewayError("upstream", "The model failed in the middle of its answer");
  const reason = REASONS.get(word) ?? "end";
  const stopSequence = reason === "end" ? readMatch(choice) : undefined;
  return stopSequence === undefined ? { reason } : { reason: "stop_sequence", stopSequence };
}

/** The reason, set right: tools are used exactly when there is a call, unless the answer was too long. */
export function settledReason(reason: FinishReason, hasCalls: boolean): FinishReason {
  if (reason === "length") return reason;
  if (hasCalls) return "tool_use";
  return reason === "tool_use" ? "end" : reason;
}

/** vLLM and SGLang name the string that was met. Elsewhere the same member holds a word for the reason. */
function readMatch(choice: JsonObject): string | undefined {
  const match = stringOf(choice.stop_reason) || stringOf(choice.matched_stop);
  return match && !/^[a-z_]+$/.test(match) ? match : undefined;
}
