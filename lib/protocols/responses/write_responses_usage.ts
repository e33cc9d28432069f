import type { TokenUsage } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

/** Writes token counts. Cached tokens are part of the input. Clients require both totals, so unknown counts are 0. */
export function writeUsage(usage: TokenUsage): JsonObject {
  const cached = usage.input_cache_read ?? 0;
  const written = (usage.input_cache_write_5m ?? 0) + (usage.input_cache_write_1h ?? 0);
  const input = (usage.prompt ?? 0) + cached + written;
  const output = usage.completion ?? 0;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: input + output,
  };
}
