import type { TokenUsage } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

/**
 * Writes usage for chat clients. `prompt_tokens` includes all input classes, `completion_tokens` includes reasoning.
 * The members are required, so unknown counts are 0.
 */
export function writeUsage(usage: TokenUsage): JsonObject {
  const cached = usage.input_cache_read ?? 0;
  const written = (usage.input_cache_write_5m ?? 0) + (usage.input_cache_write_1h ?? 0);
  const prompt = (usage.prompt ?? 0) + cached + written;
  const completion = usage.completion ?? 0;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoning ?? 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
