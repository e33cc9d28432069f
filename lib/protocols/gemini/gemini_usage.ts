/** Reads and writes the token counts of `usageMetadata`. */
import { inputTokens } from "../canonical/input_tokens.ts";
import type { TokenUsage } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { withReported } from "../extras.ts";
import { countOf } from "../members.ts";

/**
 * Reads `usageMetadata`, and adds the number of web searches. The prompt count includes cached tokens, but not the
 * results of hosted tools; the candidates count excludes thoughts. Google often omits zeros, so a missing candidates
 * count is computed from the total.
 */
export function readUsage(metadata: JsonObject, searches: number): TokenUsage {
  const prompt = countOf(metadata.promptTokenCount);
  const cached = countOf(metadata.cachedContentTokenCount);
  const toolResultTokens = countOf(metadata.toolUsePromptTokenCount) ?? 0;
  const thoughts = countOf(metadata.thoughtsTokenCount);
  const total = countOf(metadata.totalTokenCount);
  const candidateTokens = countOf(metadata.candidatesTokenCount);
  const reportedOutput = candidateTokens !== undefined || thoughts !== undefined
    ? (candidateTokens ?? 0) + (thoughts ?? 0)
    : undefined;
  const outputByTotal = total !== undefined && prompt !== undefined
    ? Math.max(0, total - prompt - toolResultTokens)
    : undefined;
  const completion = candidateTokens === undefined ? outputByTotal ?? reportedOutput : reportedOutput;
  // Cached tokens cannot exceed the prompt, so such counts are wrong.
  const isInputAbsurd = prompt !== undefined && cached !== undefined && cached > prompt;
  const usage = {
    ...(prompt !== undefined && !isInputAbsurd && { prompt: prompt - (cached ?? 0) + toolResultTokens }),
    ...(cached !== undefined && !isInputAbsurd && { input_cache_read: cached }),
    ...(completion !== undefined && { completion: Math.max(completion, thoughts ?? 0) }),
    ...(thoughts !== undefined && { reasoning: thoughts }),
  };
  return withReported(usage, { hostedCalls: { web_search: searches } });
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
