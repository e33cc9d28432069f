/** Token counts of responses. */
import { cacheWriteTokens, inputTokens } from "../canonical/input_tokens.ts";
import type { TokenUsage } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { objectOf, present, spelledCountOf } from "../members.ts";

/**
 * Reads token counts into classes that do not overlap. The protocol includes cached tokens in the input and reasoning
 * in the output; servers that exclude them are recognized by their total. Unreported counts stay unknown.
 */
export function readUsage(value: Json | undefined): TokenUsage {
  const usage = objectOf(value);
  if (usage === undefined) return {};
  const details = objectOf(usage.input_tokens_details) ?? objectOf(usage.prompt_tokens_details) ?? {};
  const outside = objectOf(usage.output_tokens_details) ?? objectOf(usage.completion_tokens_details) ?? {};
  const input = spelledCountOf(usage.input_tokens) ?? spelledCountOf(usage.prompt_tokens);
  const output = spelledCountOf(usage.output_tokens) ?? spelledCountOf(usage.completion_tokens);
  const read = spelledCountOf(details.cached_tokens) ?? spelledCountOf(usage.cached_tokens);
  const cacheWrites = spelledCountOf(details.cache_write_tokens);
  const reasoning = spelledCountOf(outside.reasoning_tokens);
  const total = spelledCountOf(usage.total_tokens);
  const cached = (read ?? 0) + (cacheWrites ?? 0);
  const beside = total === undefined || input === undefined || output === undefined ? 0 : total - input - output;
  const inputApart = cached > 0 && (beside === cached || beside === cached + (reasoning ?? 0));
  const outputApart = reasoning !== undefined && reasoning > 0 && beside === reasoning + (inputApart ? cached : 0);
  // Cached tokens cannot exceed the input: such counts are not usable.
  const isInputAbsurd = input !== undefined && !inputApart && cached > input;
  return present({
    ...(!isInputAbsurd && {
      prompt: input === undefined || inputApart ? input : input - cached,
      input_cache_read: read,
      // The cache lifetimes of this protocol have no price of their own; the shorter one is the default.
      input_cache_write_5m: cacheWrites,
    }),
    completion: output !== undefined && outputApart ? output + reasoning : output,
    reasoning,
  });
}

/** Writes token counts. Cached tokens are part of the input. Clients require both totals, so unknown counts are 0. */
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
