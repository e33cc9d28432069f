import { assertEquals } from "@std/assert";
import type { TokenUsage } from "../../../lib/protocols/canonical/types.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import { usageReader } from "../../../lib/protocols/messages/read_messages_usage.ts";

/** Counts as the vendor writes them: uncached, written, read, output. */
function counts(input: Json, written?: Json, read?: Json, output?: Json): JsonObject {
  return {
    input_tokens: input,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: output,
  };
}

Deno.test("usageReader() keeps the latest counts and never adds them up", () => {
  const split = { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 30 };
  const cases: [what: string, start: Json | undefined, updates: (Json | undefined)[], expected: TokenUsage][] = [
    ["nothing is known", undefined, [null, "x", {}], {}],
    ["zero is known", counts(0, 0, 0), [counts(null, null, null, 0)], {
      prompt: 0,
      input_cache_read: 0,
      input_cache_write_5m: 0,
      completion: 0,
    }],
    ["the start's output is a placeholder", counts(5, null, null, 1), [], { prompt: 5 }],
    ["output is of the whole answer", counts(5), [counts(null, null, null, 3), counts(null, null, null, 8)], {
      prompt: 5,
      completion: 8,
    }],
    ["the input is said again", counts(43), [counts(61, null, null, 2)], { prompt: 61, completion: 2 }],
    ["the input is divided at the end", counts(8834, 0, 0), [counts(18, 0, 8831, 2)], {
      prompt: 18,
      input_cache_read: 8831,
      input_cache_write_5m: 0,
      completion: 2,
    }],
    ["only the caches are said again", counts(18), [counts(null, null, 8831, 2)], {
      prompt: 18,
      input_cache_read: 8831,
      completion: 2,
    }],
    ["only the uncached input is said again", counts(18, 0, 8831), [counts(19, null, null, 2)], {
      prompt: 19,
      input_cache_read: 8831,
      input_cache_write_5m: 0,
      completion: 2,
    }],
    ["zeros at the end say nothing", counts(18, 0, 8831), [counts(0, 0, 0, 2)], {
      prompt: 18,
      input_cache_read: 8831,
      input_cache_write_5m: 0,
      completion: 2,
    }],
    ["zeros at the start say nothing", counts(0, 0, 0), [counts(18, 0, 7, 2)], {
      prompt: 18,
      input_cache_read: 7,
      input_cache_write_5m: 0,
      completion: 2,
    }],
    ["writes are divided at the start only", { ...counts(1, 40, 0), cache_creation: split }, [counts(1, 45, 0, 2)], {
      prompt: 1,
      input_cache_read: 0,
      input_cache_write_5m: 15,
      input_cache_write_1h: 30,
      completion: 2,
    }],
    ["writes without a division are short", counts(1, 40, 0), [counts(null, null, null, 2)], {
      prompt: 1,
      input_cache_read: 0,
      input_cache_write_5m: 40,
      completion: 2,
    }],
    [
      "half of a division tells the rest",
      { ...counts(1, 40), cache_creation: { ephemeral_1h_input_tokens: 30 } },
      [],
      { prompt: 1, input_cache_write_5m: 10, input_cache_write_1h: 30 },
    ],
    ["counts may be text", counts("12", null, "3"), [counts(null, null, null, "4")], {
      prompt: 12,
      input_cache_read: 3,
      completion: 4,
    }],
    ["what is no count is not there", counts(-1, 1.5, "many"), [counts(true, [], {}, 1e300)], {}],
    ["thinking is part of the output", undefined, [{
      output_tokens: 9,
      output_tokens_details: { thinking_tokens: 7 },
    }], { completion: 9, reasoning: 7 }],
    ["thinking is never more than the output", undefined, [{
      output_tokens: 9,
      output_tokens_details: { thinking_tokens: 12 },
    }], { completion: 9, reasoning: 9 }],
    [
      "compaction is billed on top, once",
      counts(5),
      [1, 2, 0].map((repeated) => ({
        ...counts(5, null, null, 4),
        ...repeated > 0 && {
          iterations: [{ type: "compaction", ...counts(100, null, null, 20) }, {
            type: "message",
            ...counts(5, null, null, 4),
          }],
        },
      })),
      { prompt: 105, completion: 24 },
    ],
  ];
  for (const [what, start, updates, expected] of cases) {
    const usage = usageReader();
    usage.start(start);
    updates.forEach((update) => usage.update(update));
    assertEquals(usage.total(), expected, what);
  }
});
