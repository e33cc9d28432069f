/** Reads the token counts of chat, which upstreams spell in many ways, and writes them for clients. */
import { cacheWriteTokens, inputTokens, separateCounts } from "../canonical/input_tokens.ts";
import type { TokenUsage } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { countOf, objectOf } from "../members.ts";

/** Higher counts are mistakes of the upstream. */
const MAX_TOKENS = 1_000_000_000;

/**
 * Reads the usage of an answer. Invalid counts are left out: texts, null, negative and absurdly high numbers.
 * @returns undefined if there are no counts
 */
export function readUsage(value: Json | undefined): TokenUsage | undefined {
  const usage = objectOf(value);
  if (usage === undefined) return undefined;
  const details = objectOf(usage.prompt_tokens_details) ?? {};
  const result = separateCounts({
    prompt: tokensOf(usage.prompt_tokens),
    completion: tokensOf(usage.completion_tokens),
    // DeepSeek and Moonshot report cached tokens outside of the details.
    cacheRead: tokensOf(details.cached_tokens) ?? tokensOf(usage.prompt_cache_hit_tokens) ??
      tokensOf(usage.cached_tokens),
    cacheWritten: tokensOf(details.cache_write_tokens),
    reasoning: tokensOf(objectOf(usage.completion_tokens_details)?.reasoning_tokens),
    total: tokensOf(usage.total_tokens),
  });
  const searches = readSearches(usage);
  if (searches > 0) result.hostedCalls = { web_search: searches };
  return Object.keys(result).length === 0 ? undefined : result;
}

/** Returns the number of web searches that OpenRouter, Perplexity or xAI reports. xAI bills each source. */
function readSearches(usage: JsonObject): number {
  const tools = objectOf(usage.server_tool_use) ?? objectOf(usage.server_tool_use_details) ?? {};
  return countOf(tools.web_search_requests) ?? countOf(usage.num_search_queries) ??
    countOf(usage.num_sources_used) ?? 0;
}

function tokensOf(value: Json | undefined): number | undefined {
  const count = countOf(value);
  return count !== undefined && count <= MAX_TOKENS ? count : undefined;
}

/**
 * Writes the usage for chat clients. `prompt_tokens` includes cached tokens, `completion_tokens` includes reasoning.
 * The members are required, so unknown counts are 0.
 */
export function writeUsage(usage: TokenUsage): JsonObject {
  const prompt = inputTokens(usage);
  const completion = usage.completion ?? 0;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: usage.input_cache_read ?? 0,
      cache_write_tokens: cacheWriteTokens(usage),
      audio_tokens: 0,
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoning ?? 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
