/** Writes token counts in the words of the messages protocol. */
import type { TokenUsage } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

/**
 * Token counts. Clients add the input classes and the output up, so these are numbers even where nothing is known; how
 * many tokens were thought is left out then.
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
 * Token counts before the answer begins. How cache writes divide is said only where it is known: SDKs take the later
 * counts over these, but not that division.
 */
export function writeStartUsage(usage: TokenUsage): JsonObject {
  const known = usage.input_cache_write_5m !== undefined || usage.input_cache_write_1h !== undefined;
  return known ? writeUsage(usage) : { ...writeUsage(usage), cache_creation: null };
}

/** The answer of `/v1/messages/count_tokens`. */
export function writeCount(tokens: number): JsonObject {
  return { input_tokens: tokens };
}
