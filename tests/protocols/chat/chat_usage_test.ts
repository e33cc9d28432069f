import { assertEquals } from "@std/assert";
import type { TokenUsage } from "../../../lib/protocols/canonical/types.ts";
import { type Json, parseJson } from "../../../lib/json/mod.ts";
import { readUsage } from "../../../lib/protocols/chat/chat_usage.ts";

Deno.test("readUsage() separates the counts of every vendor", () => {
  const cases: [name: string, usage: Json, read: TokenUsage | undefined][] = [
    ["none", null, undefined],
    ["no counts", { prompt_tokens: null, total_tokens: 3 }, undefined],
    ["zeros for unknown", { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, undefined],
    ["zero for unknown", { prompt_tokens: 0, completion_tokens: 3, total_tokens: 3 }, { completion: 3 }],
    ["plain", { prompt_tokens: 16, completion_tokens: 3, total_tokens: 19 }, { prompt: 16, completion: 3 }],
    [
      "OpenAI",
      {
        prompt_tokens: 100,
        completion_tokens: 30,
        total_tokens: 130,
        prompt_tokens_details: { cached_tokens: 64, cache_write_tokens: 20, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 10 },
      },
      { prompt: 16, input_cache_read: 64, input_cache_write_5m: 20, completion: 30, reasoning: 10 },
    ],
    [
      "DeepSeek, without details",
      { prompt_tokens: 16, completion_tokens: 3, prompt_cache_hit_tokens: 10, prompt_cache_miss_tokens: 6 },
      { prompt: 6, input_cache_read: 10, completion: 3 },
    ],
    [
      "DeepSeek, told twice",
      {
        prompt_tokens: 16,
        completion_tokens: 3,
        prompt_cache_hit_tokens: 10,
        prompt_tokens_details: { cached_tokens: 10 },
      },
      { prompt: 6, input_cache_read: 10, completion: 3 },
    ],
    ["Moonshot", { prompt_tokens: 16, completion_tokens: 3, cached_tokens: 4 }, {
      prompt: 12,
      input_cache_read: 4,
      completion: 3,
    }],
    [
      "xAI counts reasoning apart",
      {
        prompt_tokens: 12,
        completion_tokens: 1,
        total_tokens: 303,
        completion_tokens_details: { reasoning_tokens: 290 },
      },
      { prompt: 12, completion: 291, reasoning: 290 },
    ],
    [
      "xAI, with as much reasoning as is cached",
      {
        prompt_tokens: 100,
        completion_tokens: 30,
        total_tokens: 150,
        prompt_tokens_details: { cached_tokens: 20 },
        completion_tokens_details: { reasoning_tokens: 20 },
      },
      { prompt: 80, input_cache_read: 20, completion: 50, reasoning: 20 },
    ],
    [
      "more reasoning than completion, and no total",
      { prompt_tokens: 12, completion_tokens: 1, completion_tokens_details: { reasoning_tokens: 290 } },
      { prompt: 12, completion: 291, reasoning: 290 },
    ],
    [
      "more reasoning than completion, but a total that denies it",
      {
        prompt_tokens: 12,
        completion_tokens: 1,
        total_tokens: 13,
        completion_tokens_details: { reasoning_tokens: 290 },
      },
      { prompt: 12, completion: 1 },
    ],
    [
      "a prompt without its cached part, as the total tells",
      { prompt_tokens: 18, completion_tokens: 2, total_tokens: 8_851, prompt_tokens_details: { cached_tokens: 8_831 } },
      { prompt: 18, input_cache_read: 8_831, completion: 2 },
    ],
    [
      "more cached than there is: nobody knows the prompt",
      { prompt_tokens: 18, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 30 } },
      { completion: 2 },
    ],
    [
      "no counts at all: text, negative, broken, absurd",
      {
        prompt_tokens: "16",
        completion_tokens: -3,
        prompt_tokens_details: { cached_tokens: 1.5, cache_write_tokens: 1e12 },
        completion_tokens_details: "none",
      },
      undefined,
    ],
    ["a list", [1], undefined],
    ["numbers kept as text", parseJson('{"prompt_tokens":16.0,"completion_tokens":3e0}'), {
      prompt: 16,
      completion: 3,
    }],
  ];
  for (const [name, usage, read] of cases) assertEquals(readUsage(usage), read, name);
});
