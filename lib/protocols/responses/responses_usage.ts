/** Reads and writes the token counts of responses. */
import { cacheWriteTokens, inputTokens } from "../canonical/input_tokens.ts";
import type { TokenUsage } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { objectOf, present, spelledCountOf } from "../members.ts";

/**
 * Reads the usage as counts that do not overlap. The protocol includes cached tokens in the input and reasoning in the
 * output. Servers that exclude them are recognized by their total. Counts that are not reported stay unknown.
 */
export function readUsage(value: Json | undefined): TokenUsage {
  const usage = objectOf(value);
  if (usage === undefined) return {};
  const inputDetails = objectOf(usage.input_tokens_details) ?? objectOf(usage.prompt_tokens_details) ?? {};
  const outputDetails = objectOf(usage.output_tokens_details) ?? objectOf(usage.completion_tokens_details) ?? {};
  const input = spelledCountOf(usage.input_tokens) ?? spelledCountOf(usage.prompt_tokens);
  const output = spelledCountOf(usage.output_tokens) ?? spelledCountOf(usage.completion_tokens);
  const cacheRead = spelledCountOf(inputDetails.cached_tokens) ?? spelledCountOf(usage.cached_tokens);
  const cacheWritten = spelledCountOf(inputDetails.cache_write_tokens);
  const reasoning = spelledCountOf(outputDetails.reasoning_tokens);
  const total = spelledCountOf(usage.total_tokens);
  const cached = (cacheRead ?? 0) + (cacheWritten ?? 0);
  const excluded = total === undefined || input === undefined || output === undefined ? 0 : total - input - output;
  const excludesCache = cached > 0 && (excluded === cached || excluded === cached + (reasoning ?? 0));
  const excludesReasoning = reasoning !== undefined && reasoning > 0 &&
    excluded === reasoning + (excludesCache ? cached : 0);
  // Cached tokens cannot exceed the input, so such counts are wrong.
  const isInputAbsurd = input !== undefined && !excludesCache && cached > input;
  return present({
    ...(!isInputAbsurd && {
      prompt: input === undefined || excludesCache ? input : input - cached,
      input_cache_read: cacheRead,
      // This protocol has no price by cache lifetime. The shorter one is the default.
      input_cache_write_5m: cacheWritten,
    }),
    completion: output !== undefined && excludesReasoning ? output + reasoning : output,
    reasoning,
  });
}

/** Writes the usage. The input includes cached tokens. Clients require the counts, so unknown ones are 0. */
export function writeUsage(usage: TokenUsage): JsonObject {
  const input = inputTokens(usage);
  const output = usage.completion ?? 0;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage.input_cache_read ?? 0, cache_write_tokens: cacheWriteTokens(usage) },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: input + output,
  };
}
