import { assertEquals } from "@std/assert";
import type { ContentBlock, FinishReason, TokenUsage } from "../../../lib/protocols/canonical/types.ts";
import { isObject, type JsonObject } from "../../../lib/json/mod.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";
import { writeUsage } from "../../../lib/protocols/chat/chat_usage.ts";
import { REPLIES } from "./replies.ts";
import { request, responseContextOf } from "./requests.ts";

function write(name: string, members: JsonObject = {}): JsonObject {
  const reply = REPLIES[name];
  if (reply === undefined) throw new RangeError(`Cannot find the answer "${name}"`);
  return chat.writeReply(reply, responseContextOf(request(members)));
}

function messageOf(completion: JsonObject): unknown {
  const [choice] = Array.isArray(completion.choices) ? completion.choices : [];
  return isObject(choice) ? choice.message : undefined;
}

Deno.test("writeReply() writes messages as chat clients expect them", () => {
  const cases: [name: string, message: JsonObject][] = [
    ["emptyText", { content: "", refusal: null }],
    ["textThenRefusal", { content: "Well. ", refusal: "No." }],
    ["reasoning", {
      content: "Hello",
      refusal: null,
      reasoning_content: "First.\n\nSecond.",
      reasoning_details: [
        {
          type: "reasoning.text",
          text: "First.",
          signature: "c2ln",
          format: "anthropic-claude-v1",
          id: null,
          index: 0,
        },
        { type: "reasoning.encrypted", data: "aGlk", format: "anthropic-claude-v1", id: null, index: 1 },
        { type: "reasoning.summary", summary: "Second.", id: "rs_1", format: "openai-responses-v1", index: 2 },
        { type: "reasoning.encrypted", data: "gAAA", id: "rs_1", format: "openai-responses-v1", index: 3 },
      ],
    }],
    ["citations", {
      content: "😀 So: Oslo.",
      refusal: null,
      annotations: [
        {
          type: "url_citation",
          url_citation: { start_index: 6, end_index: 11, url: "https://example.com/1", title: "" },
        },
        {
          type: "url_citation",
          url_citation: { start_index: 7, end_index: 9, url: "https://example.com/2", title: "Two" },
        },
        {
          type: "url_citation",
          url_citation: { start_index: 6, end_index: 7, url: "https://example.com/3", title: "Three" },
        },
      ],
    }],
  ];
  for (const [name, message] of cases) {
    assertEquals(messageOf(write(name)), { role: "assistant", ...message }, name);
  }
});

Deno.test("writeReply() calls a function without arguments with an empty object", () => {
  const blocks: ContentBlock[] = [{ type: "tool_call", id: "c1", name: "now", arguments: "" }];
  const completion = chat.writeReply({ blocks, finish: "tool_use", usage: {} }, responseContextOf(request()));
  assertEquals(messageOf(completion), {
    role: "assistant",
    content: null,
    refusal: null,
    tool_calls: [{ id: "c1", type: "function", function: { name: "now", arguments: "{}" } }],
  });
});

Deno.test("writeReply() answers a request with functions with a function_call", () => {
  const completion = write("callWithoutArguments", { functions: [{ name: "now" }] });
  assertEquals(completion.choices, [{
    index: 0,
    message: { role: "assistant", content: null, refusal: null, function_call: { name: "now", arguments: "{}" } },
    logprobs: null,
    finish_reason: "function_call",
  }]);
});

Deno.test("writeReply() writes the finish reason", () => {
  const cases: [FinishReason, string][] = [
    ["end", "stop"],
    ["stop_sequence", "stop"],
    ["pause", "stop"],
    ["length", "length"],
    ["tool_use", "tool_calls"],
    ["refusal", "content_filter"],
  ];
  for (const [finish, expected] of cases) {
    const { choices } = chat.writeReply({ blocks: [], finish, usage: {} }, responseContextOf(request()));
    const [choice] = Array.isArray(choices) ? choices : [];
    assertEquals(isObject(choice) && choice.finish_reason, expected, finish);
  }
});

Deno.test("writeUsage() adds up the input classes and writes unknown counts as 0", () => {
  const cases: [usage: TokenUsage, numbers: number[]][] = [
    [{}, [0, 0, 0, 0, 0, 0]],
    [
      {
        prompt: 10,
        input_cache_read: 20,
        input_cache_write_5m: 3,
        input_cache_write_1h: 4,
        completion: 50,
        reasoning: 30,
      },
      [37, 50, 87, 20, 7, 30],
    ],
    [{ input_cache_read: 5, completion: 1 }, [5, 1, 6, 5, 0, 0]],
  ];
  for (const [usage, [prompt, completion, total, cached, written, reasoning]] of cases) {
    assertEquals<unknown>(writeUsage(usage), {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: total,
      prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: reasoning,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    });
  }
});
