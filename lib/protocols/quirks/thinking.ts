/** Writes the `thinking` switch that several vendors have instead of an effort, and reasoning that must come back. */
import type { Reasoning } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { mapMessages, omit } from "./quirk.ts";

/** The members with an effort, which a switch replaces. */
export const EFFORT_MEMBERS: readonly string[] = ["reasoning_effort", "reasoning"];

/** Returns true if the client asked for reasoning, false if it disabled it, and undefined if it did neither. */
export function wantsThinking(reasoning: Reasoning | undefined): boolean | undefined {
  if (reasoning === undefined) return undefined;
  const { mode, effort, budgetTokens } = reasoning;
  if (mode === "off" || effort === "none") return false;
  return mode !== undefined || effort !== undefined || budgetTokens !== undefined ? true : undefined;
}

/** Writes `thinking: {type}` instead of an effort. Keeps a `thinking` member that the client sent. */
export function writeThinkingSwitch(body: JsonObject, reasoning: Reasoning | undefined): JsonObject {
  const isWanted = wantsThinking(reasoning);
  const others = omit(body, EFFORT_MEMBERS);
  if (isWanted === undefined || body.thinking !== undefined) return others;
  return { ...others, thinking: { type: isWanted ? "enabled" : "disabled" } };
}

/**
 * Adds `reasoning_content` to every assistant message with tool calls, even if it is empty: without it, thinking models
 * refuse the conversation (400 "reasoning_content must be passed back").
 */
export function restoreReasoningContent(body: JsonObject): JsonObject {
  return mapMessages(body, (message) => {
    const hasCalls = message.role === "assistant" && Array.isArray(message.tool_calls) && message.tool_calls.length > 0;
    if (!hasCalls || typeof message.reasoning_content === "string") return message;
    return { ...message, reasoning_content: typeof message.reasoning === "string" ? message.reasoning : "" };
  });
}
