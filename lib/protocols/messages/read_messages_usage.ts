import { PLAIN_TIERS, type TokenUsage, type UsageClass } from "../canonical/types.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { withReported } from "../extras.ts";
import { spelledCountOf } from "../members.ts";

/** Collects the token counts of one answer. */
export interface UsageReader {
  /** Takes the counts at the start. */
  start(usage: Json | undefined): void;
  /** Takes later counts, which are of the whole answer and replace earlier ones. */
  update(usage: Json | undefined): void;
  /** Returns the known input classes. */
  input(): TokenUsage;
  /** Returns the counts of the whole answer. */
  total(): TokenUsage;
}

type Input = Pick<TokenUsage, "prompt" | "input_cache_read" | "input_cache_write_5m" | "input_cache_write_1h">;

const NOTHING: TokenUsage = {};

/**
 * Reads counts in any order.
 * @param requestedTier the service tier of the request
 */
export function usageReader(requestedTier?: string): UsageReader {
  let input: Input = {};
  let output: Pick<TokenUsage, "completion" | "reasoning"> = {};
  let compaction = NOTHING;
  let tier: string | undefined;
  let hostedCalls: Record<string, number> | undefined;

  function report(usage: JsonObject): void {
    tier = readTier(usage, requestedTier) ?? tier;
    hostedCalls = readCalls(usage.server_tool_use) ?? hostedCalls;
  }

  return {
    start(usage) {
      // The output count at the start is a placeholder.
      if (!isObject(usage)) return;
      input = readInput(usage, {});
      report(usage);
    },
    update(usage) {
      if (!isObject(usage)) return;
      report(usage);
      input = latest(usage, input);
      output = { ...output, ...readOutput(usage) };
      compaction = readCompaction(usage.iterations);
    },
    input: () => withReported({ ...input }, { tier, requestedTier }),
    total: () =>
      withReported(add(clampReasoning({ ...input, ...output }), compaction), { tier, hostedCalls, requestedTier }),
  };
}

/** Returns the tier that served the request. Each kind has a member of its own. */
function readTier(
  { service_tier, speed, inference_geo: geo }: JsonObject,
  requestedTier: string | undefined,
): string | undefined {
  const region = typeof geo === "string" && geo !== "not_available" ? geo : undefined;
  const served = [
    region === undefined || region === "global" ? undefined : `inference_geo:${region}`,
    typeof speed === "string" ? speed : undefined,
    typeof service_tier === "string" ? service_tier : undefined,
  ];
  const dear = served.find((name) => name !== undefined && !PLAIN_TIERS.has(name));
  if (dear !== undefined || requestedTier === undefined) return dear;
  const isTold = requestedTier.startsWith("inference_geo:") ? region !== undefined : typeof speed === "string";
  return isTold ? "standard" : undefined;
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
 * Returns the input counts after an update. An update with cache counts counts the whole input again: some servers
 * first put all of it into `input_tokens`. Zeros do not replace earlier counts.
 */
function latest(usage: JsonObject, before: Input): Input {
  const after = readInput(usage, before);
  if (sum(after) === 0 && sum(before) > 0) return before;
  const { prompt } = after;
  if (hasCacheCounts(after)) return { ...before.prompt !== undefined && { prompt: before.prompt }, ...after };
  return prompt === undefined ? before : { ...before, prompt };
}

function hasCacheCounts(counts: Input): boolean {
  return counts.input_cache_read !== undefined || counts.input_cache_write_5m !== undefined ||
    counts.input_cache_write_1h !== undefined;
}

/** @param before counts that divide cache writes, if these do not */
function readInput(usage: JsonObject, before: Input): Input {
  const prompt = spelledCountOf(usage.input_tokens);
  const read = spelledCountOf(usage.cache_read_input_tokens);
  return {
    ...(prompt !== undefined && { prompt }),
    ...(read !== undefined && { input_cache_read: read }),
    ...readWrites(usage, before),
  };
}

/** Reads cache writes by lifetime. An undivided sum has the default lifetime of five minutes. */
function readWrites(usage: JsonObject, before: Input): Input {
  const total = spelledCountOf(usage.cache_creation_input_tokens);
  const parts = isObject(usage.cache_creation) ? usage.cache_creation : {};
  const short = spelledCountOf(parts.ephemeral_5m_input_tokens);
  const long = spelledCountOf(parts.ephemeral_1h_input_tokens);
  if (short !== undefined || long !== undefined) {
    const known = long ?? 0;
    return { input_cache_write_5m: short ?? Math.max(0, (total ?? known) - known), input_cache_write_1h: known };
  }
  if (total === undefined) return {};
  const earlier = before.input_cache_write_1h;
  if (earlier === undefined) return { input_cache_write_5m: total };
  const kept = Math.min(earlier, total);
  return { input_cache_write_5m: total - kept, input_cache_write_1h: kept };
}

function readOutput(usage: JsonObject): Pick<TokenUsage, "completion" | "reasoning"> {
  const completion = spelledCountOf(usage.output_tokens);
  const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
  const reasoning = spelledCountOf(details.thinking_tokens);
  return { ...(completion !== undefined && { completion }), ...(reasoning !== undefined && { reasoning }) };
}

/** Limits reasoning to the completion, which includes it. */
function clampReasoning(usage: TokenUsage): TokenUsage {
  const { completion, reasoning } = usage;
  return completion === undefined || reasoning === undefined || reasoning <= completion
    ? usage
    : { ...usage, reasoning: completion };
}

/** Compaction rounds are billed, but missing in the sums. */
function readCompaction(iterations: Json | undefined): TokenUsage {
  if (!Array.isArray(iterations)) return NOTHING;
  return iterations.filter(isObject).filter(({ type }) => type === "compaction")
    .reduce((usage: TokenUsage, round) => add(usage, { ...readInput(round, {}), ...readOutput(round) }), {});
}

function add(first: TokenUsage, second: TokenUsage): TokenUsage {
  if (second === NOTHING) return first;
  const result: TokenUsage = { ...first };
  for (const [name, value] of Object.entries(second) as [UsageClass, number][]) {
    result[name] = (result[name] ?? 0) + value;
  }
  return result;
}

function sum({ prompt = 0, input_cache_read = 0, input_cache_write_5m = 0, input_cache_write_1h = 0 }: Input): number {
  return prompt + input_cache_read + input_cache_write_5m + input_cache_write_1h;
}
