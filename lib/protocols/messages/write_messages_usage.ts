import type { TokenUsage } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

/**
 * Writes token counts. Clients add up the input classes and the output, so unknown counts are 0; unknown reasoning is
 * omitted.
 */
export function writeUsage(usage: TokenUsage): JsonObject {
  const short = usage.input_cache_write_5m ?? 0;
  const long = usage.input_cache_write_1h ?? 0;
  return {
    input_tokens: usage.prompt ?? 0,
    cache_creation_input_tokens: short + long,
    cache_read_input_tokens: usage.input_cache_read ?? 0,
    cache_creation: { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: long },
    output_tokens: usage.completion ?? 0,
    ...(usage.reasoning !== undefined && { output_tokens_details: { thinking_tokens: usage.reasoning } }),
    service_tier: "standard",
  };
}

/**
 * Writes the token counts at the start. Cache writes are divided only if they are known: SDKs replace these counts by
 * the later ones, but not their division.
 */
export function writeStartUsage(usage: TokenUsage): JsonObject {
  const known = usage.input_cache_write_5m !== undefined || usage.input_cache_write_1h !== undefined;
  return known ? writeUsage(usage) : { ...writeUsage(usage), cache_creation: null };
}

/** Writes the answer of `/v1/messages/count_tokens`. */
export function writeCount(tokens: number): JsonObject {
  return { input_tokens: tokens };
}
