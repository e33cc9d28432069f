/** Reads finish reasons of many vendors. */
import type { FinishReason, TokenUsage } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { countOf, objectOf, stringOf } from "../members.ts";

/** A reason, with the matched stop string if the upstream reports it. */
export interface ChatFinish {
  reason: FinishReason;
  stopSequence?: string;
}

/** Reasons other than an ordinary end. */
const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["length", "length"],
  ["max_tokens", "length"],
  // Mistral: the context is full.
  ["model_length", "length"],
  ["tool_calls", "tool_use"],
  ["function_call", "tool_use"],
  ["tool_use", "tool_use"],
  ["content_filter", "refusal"],
  // GLM.
  ["sensitive", "refusal"],
]);

/** Reasons of a failed answer: OpenRouter and Mistral, vLLM, DeepSeek, GLM. */
const FAILURES: ReadonlySet<string> = new Set(["error", "abort", "insufficient_system_resource", "network_error"]);

/**
 * Reads the reason of a choice; `undefined` while there is none. Unknown reasons are an ordinary end.
 * @throws {GatewayError} `upstream`, if the reason is a failure
 */
export function readFinish(choice: JsonObject): ChatFinish | undefined {
  const word = stringOf(choice.finish_reason);
  if (!word) return undefined;
  if (FAILURES.has(word)) throw new GatewayError("upstream", "The model failed in the middle of its answer");
  const reason = REASONS.get(word) ?? "end";
  const stopSequence = reason === "end" ? readMatch(choice) : undefined;
  return stopSequence === undefined ? { reason } : { reason: "stop_sequence", stopSequence };
}

/** vLLM and SGLang report the matched string. Elsewhere the same member has the name of the reason. */
function readMatch(choice: JsonObject): string | undefined {
  const match = stringOf(choice.stop_reason) || stringOf(choice.matched_stop);
  return match && !/^[a-z_]+$/.test(match) ? match : undefined;
}

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
  const written = tokensOf(details.cache_write_tokens);
  const apart = (cached ?? 0) + (written ?? 0);
  const beside = excludesCache(usage, apart);
  // Cached tokens cannot exceed the prompt: such counts are not usable.
  if (all !== undefined && !beside && apart > all) return;
  if (all !== undefined) read.prompt = beside ? all : all - apart;
  if (cached !== undefined) read.input_cache_read = cached;
  // The lifetime is not reported; five minutes are the default.
  if (written !== undefined) read.input_cache_write_5m = written;
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
