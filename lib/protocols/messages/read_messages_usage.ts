/** Reads the token counts of an answer in the messages protocol, which may come in several parts. */
import { inputTokens } from "../canonical/input_tokens.ts";
import { PLAIN_TIERS, type TokenUsage, type UsageClass } from "../canonical/types.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { withReported } from "../extras.ts";
import { objectOf, objectsOf, present, spelledCountOf, stringOf } from "../members.ts";

/** Collects the token counts of one answer. */
export interface UsageReader {
  /** Reads the counts at the start of the answer. */
  start(usage: Json | undefined): void;
  /** Reads later counts. They are those of the whole answer, and replace earlier ones. */
  update(usage: Json | undefined): void;
  /** Returns the counts that are known so far. */
  total(): TokenUsage;
}

type InputUsage = Pick<TokenUsage, "prompt" | "input_cache_read" | "input_cache_write_5m" | "input_cache_write_1h">;

/** Creates a reader of counts. @param requestedTier the service tier of the request */
export function usageReader(requestedTier?: string): UsageReader {
  let input: InputUsage = {};
  let output: Pick<TokenUsage, "completion" | "reasoning"> = {};
  let compaction: TokenUsage = {};
  let tier: string | undefined;
  let hostedCalls: Record<string, number> | undefined;

  function readReported(usage: JsonObject): void {
    tier = readTier(usage, requestedTier) ?? tier;
    hostedCalls = readCalls(usage.server_tool_use) ?? hostedCalls;
  }

  return {
    start(usage) {
      // The output count at the start is a placeholder.
      if (!isObject(usage)) return;
      input = readInput(usage, {});
      readReported(usage);
    },
    update(usage) {
      if (!isObject(usage)) return;
      readReported(usage);
      input = updatedInput(usage, input);
      output = { ...output, ...readOutput(usage) };
      if (Array.isArray(usage.iterations)) compaction = readCompaction(usage.iterations);
    },
    total: () =>
      withReported(add(clampReasoning({ ...input, ...output }), compaction), { tier, hostedCalls, requestedTier }),
  };
}

/**
 * Returns the tier that served the request; undefined for a tier at the default price, unless another was requested.
 * Each kind of tier has a member of its own.
 */
function readTier(
  { service_tier, speed, inference_geo: geo }: JsonObject,
  requestedTier: string | undefined,
): string | undefined {
  const region = geo === "not_available" ? undefined : stringOf(geo);
  const tiers = [
    region === undefined || region === "global" ? undefined : `inference_geo:${region}`,
    stringOf(speed),
    stringOf(service_tier),
  ];
  const pricedTier = tiers.find((name) => name !== undefined && !PLAIN_TIERS.has(name));
  if (pricedTier !== undefined || requestedTier === undefined) return pricedTier;
  const isReported = requestedTier.startsWith("inference_geo:") ? region !== undefined : typeof speed === "string";
  return isReported ? "standard" : undefined;
}

/** Reads calls of hosted tools, such as `web_search_requests`. */
function readCalls(value: Json | undefined): Record<string, number> | undefined {
  if (!isObject(value)) return undefined;
  const calls: Record<string, number> = {};
  for (const [name, count] of Object.entries(value)) {
    const calledTimes = name.endsWith("_requests") ? spelledCountOf(count) : undefined;
    if (calledTimes !== undefined) calls[name.slice(0, -"_requests".length)] = calledTimes;
  }
  return calls;
}

/**
 * Returns the input counts after an update. An update with cache counts replaces all counts, because some servers first
 * put the whole input into `input_tokens`. Zeros do not replace earlier counts.
 */
function updatedInput(usage: JsonObject, earlier: InputUsage): InputUsage {
  const later = readInput(usage, earlier);
  if (inputTokens(later) === 0 && inputTokens(earlier) > 0) return earlier;
  const { prompt } = later;
  if (hasCacheCounts(later)) return { ...present({ prompt: earlier.prompt }), ...later };
  return prompt === undefined ? earlier : { ...earlier, prompt };
}

function hasCacheCounts(counts: InputUsage): boolean {
  return counts.input_cache_read !== undefined || counts.input_cache_write_5m !== undefined ||
    counts.input_cache_write_1h !== undefined;
}

/** @param earlier counts with cache writes by lifetime, used if these have only their sum */
function readInput(usage: JsonObject, earlier: InputUsage): InputUsage {
  return {
    ...present({
      prompt: spelledCountOf(usage.input_tokens),
      input_cache_read: spelledCountOf(usage.cache_read_input_tokens),
    }),
    ...readWrites(usage, earlier),
  };
}

/** Reads cache writes by lifetime. If there is only their sum, they have the default lifetime of five minutes. */
function readWrites(usage: JsonObject, earlier: InputUsage): InputUsage {
  const total = spelledCountOf(usage.cache_creation_input_tokens);
  const parts = objectOf(usage.cache_creation) ?? {};
  const fiveMinutes = spelledCountOf(parts.ephemeral_5m_input_tokens);
  const hour = spelledCountOf(parts.ephemeral_1h_input_tokens);
  if (fiveMinutes !== undefined || hour !== undefined) {
    const hourTokens = hour ?? 0;
    return {
      input_cache_write_5m: fiveMinutes ?? Math.max(0, (total ?? hourTokens) - hourTokens),
      input_cache_write_1h: hourTokens,
    };
  }
  if (total === undefined) return {};
  const earlierHour = earlier.input_cache_write_1h;
  if (earlierHour === undefined) return { input_cache_write_5m: total };
  const hourTokens = Math.min(earlierHour, total);
  return { input_cache_write_5m: total - hourTokens, input_cache_write_1h: hourTokens };
}

function readOutput(usage: JsonObject): Pick<TokenUsage, "completion" | "reasoning"> {
  return present({
    completion: spelledCountOf(usage.output_tokens),
    reasoning: spelledCountOf(objectOf(usage.output_tokens_details)?.thinking_tokens),
  });
}

/** Limits reasoning to the completion, which includes it. */
function clampReasoning(usage: TokenUsage): TokenUsage {
  const { completion = Infinity, reasoning } = usage;
  return reasoning === undefined ? usage : { ...usage, reasoning: Math.min(reasoning, completion) };
}

/** Reads the counts of compactions. They are billed, but not included in the sums. */
function readCompaction(iterations: Json): TokenUsage {
  return objectsOf(iterations).filter(({ type }) => type === "compaction")
    .reduce((usage: TokenUsage, round) => add(usage, { ...readInput(round, {}), ...readOutput(round) }), {});
}

function add(first: TokenUsage, second: TokenUsage): TokenUsage {
  const result: TokenUsage = { ...first };
  for (const [name, value] of Object.entries(second) as [UsageClass, number][]) {
    result[name] = (result[name] ?? 0) + value;
  }
  return result;
}
