/** Reads the token counts of chat, which upstreams spell in many ways, and writes them for clients. */
import { cacheWriteTokens, inputTokens } from "../canonical/input_tokens.ts";
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
  const result: TokenUsage = {};
  readInput(usage, result);
  readOutput(usage, result);
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

function readInput(usage: JsonObject, result: TokenUsage): void {
  const details = objectOf(usage.prompt_tokens_details) ?? {};
  const promptTokens = tokensOf(usage.prompt_tokens);
  // DeepSeek and Moonshot report cached tokens outside of the details.
  const cached = tokensOf(details.cached_tokens) ?? tokensOf(usage.prompt_cache_hit_tokens) ??
    tokensOf(usage.cached_tokens);
  const cacheWritten = tokensOf(details.cache_write_tokens);
  const cacheTokens = (cached ?? 0) + (cacheWritten ?? 0);
  const isExcluded = excludesCache(usage, cacheTokens);
  // Cached tokens cannot exceed the prompt, so such counts are wrong.
  if (promptTokens !== undefined && !isExcluded && cacheTokens > promptTokens) return;
  if (promptTokens !== undefined) result.prompt = isExcluded ? promptTokens : promptTokens - cacheTokens;
  if (cached !== undefined) result.input_cache_read = cached;
  // The lifetime is not reported; five minutes are the default.
  if (cacheWritten !== undefined) result.input_cache_write_5m = cacheWritten;
}

/** True if `prompt_tokens` excludes the cached tokens, as at some upstreams. Their total shows it. */
function excludesCache(usage: JsonObject, cacheTokens: number): boolean {
  const total = tokensOf(usage.total_tokens);
  const sum = (tokensOf(usage.prompt_tokens) ?? 0) + (tokensOf(usage.completion_tokens) ?? 0);
  return cacheTokens > 0 && total !== undefined && total === sum + cacheTokens;
}

function readOutput(usage: JsonObject, result: TokenUsage): void {
  const completion = tokensOf(usage.completion_tokens);
  const reasoning = tokensOf(objectOf(usage.completion_tokens_details)?.reasoning_tokens);
  if (completion !== undefined) result.completion = completion;
  if (completion === undefined || reasoning === undefined) {
    if (reasoning !== undefined) result.reasoning = reasoning;
    return;
  }
  // xAI excludes reasoning from the completion. The total shows it; without a total, more reasoning than completion
  // does.
  const prompt = tokensOf(usage.prompt_tokens) ?? 0;
  const total = tokensOf(usage.total_tokens);
  const isExcluded = reasoning > 0 &&
    (total === undefined ? reasoning > completion : total === prompt + completion + reasoning);
  if (isExcluded) result.completion = completion + reasoning;
  if (isExcluded || reasoning <= completion) result.reasoning = reasoning;
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
