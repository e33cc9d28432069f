/** Parts and sums of token counts. In sums, unknown counts are taken as 0. */
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
