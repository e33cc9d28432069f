/** Token counts of chat, in many spellings. */
import { cacheWriteTokens, inputTokens } from "../canonical/input_tokens.ts";
import type { TokenUsage } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { countOf, objectOf } from "../members.ts";

/** Higher counts are mistakes of the upstream. */
const MAX_TOKENS = 1_000_000_000;

/**
 * Reads the usage of an answer. Invalid counts (text, null, negative, absurd) are absent.
 * @returns undefined if there are no counts
 */
export function readUsage(value: Json | undefined): TokenUsage | undefined {
  const usage = objectOf(value);
  if (usage === undefined) return undefined;
  const read: TokenUsage = {};
  readInput(usage, read);
  readOutput(usage, read);
  const searches = readSearches(usage);
  if (searches > 0) read.hostedCalls = { web_search: searches };
  return Object.keys(read).length === 0 ? undefined : read;
}

/** Search counts of OpenRouter, Perplexity, and xAI, which bills its sources one by one. */
function readSearches(usage: JsonObject): number {
  const tools = objectOf(usage.server_tool_use) ?? objectOf(usage.server_tool_use_details) ?? {};
  return countOf(tools.web_search_requests) ?? countOf(usage.num_search_queries) ??
    countOf(usage.num_sources_used) ?? 0;
}

function readInput(usage: JsonObject, read: TokenUsage): void {
  const details = objectOf(usage.prompt_tokens_details) ?? {};
  const all = tokensOf(usage.prompt_tokens);
  // DeepSeek and Moonshot report cached tokens beside the details.
  const cached = tokensOf(details.cached_tokens) ?? tokensOf(usage.prompt_cache_hit_tokens) ??
    tokensOf(usage.cached_tokens);
  const cacheWrites = tokensOf(details.cache_write_tokens);
  const apart = (cached ?? 0) + (cacheWrites ?? 0);
  const beside = excludesCache(usage, apart);
  // Cached tokens cannot exceed the prompt: such counts are not usable.
  if (all !== undefined && !beside && apart > all) return;
  if (all !== undefined) read.prompt = beside ? all : all - apart;
  if (cached !== undefined) read.input_cache_read = cached;
  // The lifetime is not reported; five minutes are the default.
  if (cacheWrites !== undefined) read.input_cache_write_5m = cacheWrites;
}

/** Some upstreams exclude cached tokens from the prompt, which their total shows. */
function excludesCache(usage: JsonObject, apart: number): boolean {
  const total = tokensOf(usage.total_tokens);
  const sum = (tokensOf(usage.prompt_tokens) ?? 0) + (tokensOf(usage.completion_tokens) ?? 0);
  return apart > 0 && total !== undefined && total === sum + apart;
}

function readOutput(usage: JsonObject, read: TokenUsage): void {
  const completion = tokensOf(usage.completion_tokens);
  const reasoning = tokensOf(objectOf(usage.completion_tokens_details)?.reasoning_tokens);
  if (completion !== undefined) read.completion = completion;
  if (completion === undefined || reasoning === undefined) {
    if (reasoning !== undefined) read.reasoning = reasoning;
    return;
  }
  // xAI excludes reasoning from the completion. Without a total, more reasoning than completion shows it.
  const prompt = tokensOf(usage.prompt_tokens) ?? 0;
  const total = tokensOf(usage.total_tokens);
  const outside = reasoning > 0 &&
    (total === undefined ? reasoning > completion : total === prompt + completion + reasoning);
  if (outside) read.completion = completion + reasoning;
  if (outside || reasoning <= completion) read.reasoning = reasoning;
}

function tokensOf(value: Json | undefined): number | undefined {
  const count = countOf(value);
  return count !== undefined && count <= MAX_TOKENS ? count : undefined;
}

/**
 * Writes usage for chat clients. `prompt_tokens` includes all input classes, `completion_tokens` includes reasoning.
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
