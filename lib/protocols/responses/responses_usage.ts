/** Reads and writes the token counts of responses. */
import { cacheWriteTokens, inputTokens, separateCounts } from "../canonical/input_tokens.ts";
import type { TokenUsage } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { objectOf, spelledCountOf } from "../members.ts";

/** Reads the usage as counts that do not overlap. Counts that are not reported stay unknown. */
export function readUsage(value: Json | undefined): TokenUsage {
  const usage = objectOf(value);
  if (usage === undefined) return {};
  const inputDetails = objectOf(usage.input_tokens_details) ?? objectOf(usage.prompt_tokens_details) ?? {};
  const outputDetails = objectOf(usage.output_tokens_details) ?? objectOf(usage.completion_tokens_details) ?? {};
  return separateCounts({
    prompt: spelledCountOf(usage.input_tokens) ?? spelledCountOf(usage.prompt_tokens),
    completion: spelledCountOf(usage.output_tokens) ?? spelledCountOf(usage.completion_tokens),
    cacheRead: spelledCountOf(inputDetails.cached_tokens) ?? spelledCountOf(usage.cached_tokens),
    cacheWritten: spelledCountOf(inputDetails.cache_write_tokens),
    reasoning: spelledCountOf(outputDetails.reasoning_tokens),
    total: spelledCountOf(usage.total_tokens),
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
