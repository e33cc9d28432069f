/** Token counts in `usageMetadata`. */
import { inputTokens } from "../canonical/input_tokens.ts";
import type { TokenUsage } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { countOf } from "../members.ts";

/**
 * Reads `usageMetadata`. The prompt count includes cached tokens, but not results of hosted tools; the candidates count
 * excludes thoughts. Zeros are often omitted, so a missing candidates count is what the total leaves.
 */
export function readUsage(metadata: JsonObject): TokenUsage {
  const prompt = countOf(metadata.promptTokenCount);
  const cached = countOf(metadata.cachedContentTokenCount);
  const fedBack = countOf(metadata.toolUsePromptTokenCount) ?? 0;
  const thoughts = countOf(metadata.thoughtsTokenCount);
  const total = countOf(metadata.totalTokenCount);
  const candidateTokens = countOf(metadata.candidatesTokenCount);
  const answered = candidateTokens !== undefined || thoughts !== undefined
    ? (candidateTokens ?? 0) + (thoughts ?? 0)
    : undefined;
  const derived = total !== undefined && prompt !== undefined ? Math.max(0, total - prompt - fedBack) : undefined;
  const completion = candidateTokens === undefined ? derived ?? answered : answered;
  // Cached tokens cannot exceed the prompt: such counts are not usable.
  const isInputAbsurd = prompt !== undefined && cached !== undefined && cached > prompt;
  return {
    ...(prompt !== undefined && !isInputAbsurd && { prompt: prompt - (cached ?? 0) + fedBack }),
    ...(cached !== undefined && !isInputAbsurd && { input_cache_read: cached }),
    ...(completion !== undefined && { completion: Math.max(completion, thoughts ?? 0) }),
    ...(thoughts !== undefined && { reasoning: thoughts }),
  };
}

/** Returns the input classes, which are known before the answer. */
export function inputUsage({ prompt, input_cache_read }: TokenUsage): TokenUsage {
  return { ...(prompt !== undefined && { prompt }), ...(input_cache_read !== undefined && { input_cache_read }) };
}

/** Writes `usageMetadata`. The prompt count includes cached tokens; the candidates count excludes thoughts. */
export function writeUsage(usage: TokenUsage): JsonObject {
  const { input_cache_read: cached = 0, completion = 0, reasoning } = usage;
  const input = inputTokens(usage);
  return {
    promptTokenCount: input,
    candidatesTokenCount: Math.max(0, completion - (reasoning ?? 0)),
    totalTokenCount: input + completion,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    ...(reasoning !== undefined && { thoughtsTokenCount: reasoning }),
  };
}
