/**
 * Parts and sums of token counts, in which unknown counts are taken as 0, and the separation of the counts of OpenAI's
 * protocols, which overlap, and which some servers report otherwise.
 */
import type { TokenUsage } from "./types.ts";

/** Returns the tokens that were written to the prompt cache, for any lifetime. */
export function cacheWriteTokens({ input_cache_write_5m = 0, input_cache_write_1h = 0 }: TokenUsage): number {
  return input_cache_write_5m + input_cache_write_1h;
}

/** Returns all input tokens: those outside the prompt cache, read from it and written to it. */
export function inputTokens(usage: TokenUsage): number {
  return (usage.prompt ?? 0) + (usage.input_cache_read ?? 0) + cacheWriteTokens(usage);
}

/** Returns the part of a usage that can be known before the answer; undefined if it is empty. */
export function inputUsage(usage: TokenUsage): TokenUsage | undefined {
  const { completion: _, reasoning: __, hostedCalls: ___, ...input } = usage;
  return Object.keys(input).length === 0 ? undefined : input;
}

/** Token counts as reported; undefined if they are missing or invalid. */
export interface ReportedCounts {
  prompt: number | undefined;
  completion: number | undefined;
  cacheRead: number | undefined;
  cacheWritten: number | undefined;
  reasoning: number | undefined;
  total: number | undefined;
}

/**
 * Returns the counts as classes that do not overlap. OpenAI includes cached tokens in the prompt, and reasoning in the
 * completion. Servers that exclude them, such as xAI the reasoning, are recognized by their total; without a total, more
 * reasoning than completion shows it. Counts that contradict each other stay unknown.
 */
export function separateCounts(
  { prompt, completion, cacheRead, cacheWritten, reasoning, total }: ReportedCounts,
): TokenUsage {
  const cached = (cacheRead ?? 0) + (cacheWritten ?? 0);
  const excluded = total === undefined || prompt === undefined || completion === undefined
    ? undefined
    : total - prompt - completion;
  const excludesReasoning = reasoning !== undefined && reasoning > 0 && completion !== undefined &&
    (total === undefined ? reasoning > completion : excluded === reasoning || excluded === reasoning + cached);
  const excludesCache = cached > 0 && excluded === cached + (excludesReasoning ? reasoning : 0);
  // No request has an empty input: some hosts report 0 for unknown counts, in all chunks or in all but the last.
  const isInputAbsurd = prompt !== undefined && !excludesCache && (cached > prompt || prompt === 0);
  if (isInputAbsurd && prompt === 0 && !completion) return {};
  const isReasoningAbsurd = completion !== undefined && !excludesReasoning && (reasoning ?? 0) > completion;
  return {
    ...(prompt !== undefined && !isInputAbsurd && { prompt: excludesCache ? prompt : prompt - cached }),
    ...(cacheRead !== undefined && !isInputAbsurd && { input_cache_read: cacheRead }),
    // These protocols do not report the lifetime of cache entries. Five minutes are the default.
    ...(cacheWritten !== undefined && !isInputAbsurd && { input_cache_write_5m: cacheWritten }),
    ...(completion !== undefined && { completion: excludesReasoning ? completion + reasoning : completion }),
    ...(reasoning !== undefined && !isReasoningAbsurd && { reasoning }),
  };
}
