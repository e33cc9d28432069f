/** The `thinking` switch that several vendors have in place of an effort, and reasoning that must come back. */
import type { Reasoning } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { mapMessages, omit } from "./quirk.ts";

/** Members that say how much to think; a switch takes their place. */
export const EFFORT_MEMBERS: readonly string[] = ["reasoning_effort", "reasoning"];

/** Whether reasoning was asked for or declined; `undefined` where nothing was said. */
export function wantsThinking(reasoning: Reasoning | undefined): boolean | undefined {
  if (reasoning === undefined) return undefined;
  const { mode, effort, budgetTokens } = reasoning;
  if (mode === "off" || effort === "none") return false;
  return mode !== undefined || effort !== undefined || budgetTokens !== undefined ? true : undefined;
}

/** `reasoning_effort` as `thinking: {type}`. A `thinking` of the client's own stays. */
export function writeThinkingSwitch(body: JsonObject, reasoning: Reasoning | undefined): JsonObject {
  const wanted = wantsThinking(reasoning);
  const others = omit(body, EFFORT_MEMBERS);
  if (wanted === undefined || body.thinking !== undefined) return others;
  return { ...others, thinking: { type: wanted ? "enabled" : "disabled" } };
}

/**
 * `reasoning_content` on every assistant message that calls tools, even if it is empty: thinking models refuse a history
 * where it is missing (400 "reasoning_content must be passed back").
 */
export function restoreReasoningContent(body: JsonObject): JsonObject {
  return mapMessages(body, (message) => {
    const calls = message.role === "assistant" && Array.isArray(message.tool_calls) && message.tool_calls.length > 0;
    if (!calls || typeof message.reasoning_content === "string") return message;
    return { ...message, reasoning_content: typeof message.reasoning === "string" ? message.reasoning : "" };
  });
}
