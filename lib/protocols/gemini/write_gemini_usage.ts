import type { TokenUsage } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

/** Writes `usageMetadata`. The prompt count includes cached tokens; the candidates count excludes thoughts. */
export function writeUsage(usage: TokenUsage): JsonObject {
  const { prompt = 0, input_cache_read: cached = 0, completion = 0, reasoning } = usage;
  const input = prompt + cached + (usage.input_cache_write_5m ?? 0) + (usage.input_cache_write_1h ?? 0);
  return {
    promptTokenCount: input,
    candidatesTokenCount: Math.max(0, completion - (reasoning ?? 0)),
    totalTokenCount: input + completion,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    ...(reasoning !== undefined && { thoughtsTokenCount: reasoning }),
  };
}
