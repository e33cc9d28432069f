/** Reads what an answer cost. */
import type { TokenUsage } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { countOf } from "../members.ts";

/**
 * Reads `usageMetadata`. The count of the prompt includes what was read from a cache, but not what hosted tools fed
 * back; the count of the candidates does not include the thoughts. Zeros are often left out, so that a missing count of
 * candidates is what the total leaves for it.
 */
export function readUsage(metadata: JsonObject): TokenUsage {
  const prompt = countOf(metadata.promptTokenCount);
  const cached = countOf(metadata.cachedContentTokenCount);
  const fedBack = countOf(metadata.toolUsePromptTokenCount) ?? 0;
  const thoughts = countOf(metadata.thoughtsTokenCount);
  const total = countOf(metadata.totalTokenCount);
  const said = countOf(metadata.candidatesTokenCount);
  const answered = said !== undefined || thoughts !== undefined ? (said ?? 0) + (thoughts ?? 0) : undefined;
  const left = total !== undefined && prompt !== undefined ? Math.max(0, total - prompt - fedBack) : undefined;
  const completion = said === undefined ? left ?? answered : answered;
  // No part is more than its whole: nobody knows what these numbers count.
  const isInputAbsurd = prompt !== undefined && cached !== undefined && cached > prompt;
  return {
    ...(prompt !== undefined && !isInputAbsurd && { prompt: prompt - (cached ?? 0) + fedBack }),
    ...(cached !== undefined && !isInputAbsurd && { input_cache_read: cached }),
    ...(completion !== undefined && { completion: Math.max(completion, thoughts ?? 0) }),
    ...(thoughts !== undefined && { reasoning: thoughts }),
  };
}

/** The part of the usage that is known before the answer. */
export function inputUsage({ prompt, input_cache_read }: TokenUsage): TokenUsage {
  return { ...(prompt !== undefined && { prompt }), ...(input_cache_read !== undefined && { input_cache_read }) };
}
