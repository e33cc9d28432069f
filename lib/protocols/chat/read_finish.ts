/** Reads finish reasons of many vendors. */
import type { FinishReason } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import { stringOf } from "../members.ts";

/** A reason, with the matched stop string if the upstream reports it. */
export interface ChatFinish {
  reason: FinishReason;
  stopSequence?: string;
}

/** Reasons other than an ordinary end. */
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

/** Reasons of a failed answer: OpenRouter and Mistral, vLLM, DeepSeek, GLM. */
const FAILURES: ReadonlySet<string> = new Set(["error", "abort", "insufficient_system_resource", "network_error"]);

/**
 * Reads the reason of a choice; `undefined` while there is none. Unknown reasons are an ordinary end.
 * @throws {GatewayError} `upstream`, if the reason is a failure
 */
export function readFinish(choice: JsonObject): ChatFinish | undefined {
  const word = stringOf(choice.finish_reason);
  if (!word) return undefined;
  if (FAILURES.has(word)) throw new GatewayError("upstream", "The model failed in the middle of its answer");
  const reason = REASONS.get(word) ?? "end";
  const stopSequence = reason === "end" ? readMatch(choice) : undefined;
  return stopSequence === undefined ? { reason } : { reason: "stop_sequence", stopSequence };
}

/** Corrects a reason: it is `tool_use` exactly if there is a call, unless the answer was cut by `length`. */
export function settledReason(reason: FinishReason, hasCalls: boolean): FinishReason {
  if (reason === "length") return reason;
  if (hasCalls) return "tool_use";
  return reason === "tool_use" ? "end" : reason;
}

/** vLLM and SGLang report the matched string. Elsewhere the same member has the name of the reason. */
function readMatch(choice: JsonObject): string | undefined {
  const match = stringOf(choice.stop_reason) || stringOf(choice.matched_stop);
  return match && !/^[a-z_]+$/.test(match) ? match : undefined;
}
