/** Reads token counts. */
import type { Usage } from "../../canonical/types.ts";
import { isObject, type Json, type JsonObject } from "../../json.ts";
import { spelledCountOf } from "../members.ts";

/** Collects the token counts of one answer. */
export interface UsageReader {
  /** Takes the counts of the beginning. */
  start(usage: Json | undefined): void;
  /** Takes the counts so far: they are of the whole answer, so they replace what was known. */
  update(usage: Json | undefined): void;
  /** What is known of the input. */
  input(): Usage;
  /** What is known of the whole answer. */
  total(): Usage;
}

type Input = Pick<Usage, "prompt" | "input_cache_read" | "input_cache_write_5m" | "input_cache_write_1h">;

const NOTHING: Usage = {};

/** Counts of one answer, whatever order they come in. */
export function usageReader(): UsageReader {
  let input: Input = {};
  let output: Pick<Usage, "completion" | "reasoning"> = {};
  let compaction = NOTHING;

  return {
    start(usage) {
      // What it says of the output is a placeholder.
      if (isObject(usage)) input = readInput(usage, {});
    },
    update(usage) {
      if (!isObject(usage)) return;
      input = latest(usage, input);
      output = { ...output, ...readOutput(usage) };
      compaction = readCompaction(usage.iterations);
    },
    input: () => ({ ...input }),
    total: () => add(clampReasoning({ ...input, ...output }), compaction),
  };
}

/**
 * Counts of the input, after an update. One that speaks of caches counts the whole input anew: some servers put all of it
 * into `input_tokens` at first and divide it at the end. Some repeat zeros for what they said before.
 */
function latest(usage: JsonObject, before: Input): Input {
  const after = readInput(usage, before);
  if (sum(after) === 0 && sum(before) > 0) return before;
  const { prompt } = after;
  if (speaksOfCaches(after)) return { ...before.prompt !== undefined && { prompt: before.prompt }, ...after };
  return prompt === undefined ? before : { ...before, prompt };
}

function speaksOfCaches(counts: Input): boolean {
  return counts.input_cache_read !== undefined || counts.input_cache_write_5m !== undefined ||
    counts.input_cache_write_1h !== undefined;
}

/** @param before counts that tell how cache writes divide, where these do not */
function readInput(usage: JsonObject, before: Input): Input {
  const prompt = spelledCountOf(usage.input_tokens);
  const read = spelledCountOf(usage.cache_read_input_tokens);
  return {
    ...(prompt !== undefined && { prompt }),
    ...(read !== undefined && { input_cache_read: read }),
    ...readWrites(usage, before),
  };
}

/** Cache writes by how long they last. A sum without its parts is of the five minutes that are the default. */
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

function readOutput(usage: JsonObject): Pick<Usage, "completion" | "reasoning"> {
  const completion = spelledCountOf(usage.output_tokens);
  const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
  const reasoning = spelledCountOf(details.thinking_tokens);
  return { ...(completion !== undefined && { completion }), ...(reasoning !== undefined && { reasoning }) };
}

/** Reasoning is part of the completion. */
function clampReasoning(usage: Usage): Usage {
  const { completion, reasoning } = usage;
  return completion === undefined || reasoning === undefined || reasoning <= completion
    ? usage
    : { ...usage, reasoning: completion };
}

/** Rounds in which the vendor made the conversation shorter are billed, and not in the sums. */
function readCompaction(iterations: Json | undefined): Usage {
  if (!Array.isArray(iterations)) return NOTHING;
  return iterations.filter(isObject).filter(({ type }) => type === "compaction")
    .reduce((usage: Usage, round) => add(usage, { ...readInput(round, {}), ...readOutput(round) }), {});
}

function add(first: Usage, second: Usage): Usage {
  if (second === NOTHING) return first;
  const result: Usage = { ...first };
  for (const [name, value] of Object.entries(second) as [Exclude<keyof Usage, "counted">, number][]) {
    result[name] = (result[name] ?? 0) + value;
  }
  return result;
}

function sum({ prompt = 0, input_cache_read = 0, input_cache_write_5m = 0, input_cache_write_1h = 0 }: Input): number {
  return prompt + input_cache_read + input_cache_write_5m + input_cache_write_1h;
}
