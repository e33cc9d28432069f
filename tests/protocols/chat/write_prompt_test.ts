import { assert, assertEquals, assertThrows } from "@std/assert";
import { runToEnd } from "../../../lib/scheduler.ts";
import type { ContentBlock, Message, Prompt, Reasoning } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import type { WriteTarget } from "../../../lib/protocols/upstream_codec.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";
import { chatUpstream } from "../../../lib/protocols/chat/upstream.ts";
import { effortOfBudget } from "../../../lib/protocols/canonical/effort.ts";
import { promptOf, user } from "../canonical/messages.ts";
import agent from "../../fixtures/chat/agent.json" with { type: "json" };
import routed from "../../fixtures/chat/routed.json" with { type: "json" };
import { targetOf } from "./targets.ts";

function write(members: Partial<Prompt>, target: WriteTarget = targetOf()): JsonObject {
  return runToEnd(chatUpstream.writePrompt(promptOf([user("Hi")], { protocol: "messages", ...members }), target));
}

function writeMessages(messages: Message[], target?: WriteTarget): Json | undefined {
  return write({ messages }, target).messages;
}

/** A request again, in the normal forms that are named in the comment of `writePrompt()`. */
function writeBack(body: JsonObject, target: WriteTarget): JsonObject {
  return runToEnd(chatUpstream.writePrompt(chat.readPrompt(body), target));
}

Deno.test("writePrompt() reverses readPrompt() in normal form: calls and tools with unknown members", () => {
  const target = targetOf();
  const body = agent.request as JsonObject;
  const messages = structuredClone(agent.request.messages) as JsonObject[];
  // A single plain part becomes a string, blank arguments an empty object, and null is omitted.
  Object.assign(messages[1] ?? {}, { content: "The chain slips." });
  Object.assign(messages[4] ?? {}, { content: "1 row" });
  delete messages[2]?.refusal;
  const calls = messages[2]?.tool_calls as JsonObject[];
  (calls[2]?.function as JsonObject).arguments = "{}";
  const tools = structuredClone(body.tools) as JsonObject[];
  delete (tools[0]?.function as JsonObject).strict;
  const { max_tokens: _, ...rest } = body;
  assertEquals(writeBack(body, target), { ...rest, model: "thinker-1", messages, tools });
  assertEquals(target.dropped.names, []);
});

Deno.test("writePrompt() reverses readPrompt() in normal form: parts, cache marks, reasoning and parameters", () => {
  const target = targetOf({ issuer: "anthropic", dialect: { cacheMarks: true, reasoningDetails: true } });
  const body = routed.request as unknown as JsonObject;
  const mark = { cache_control: { type: "ephemeral" } };
  const messages = structuredClone(body.messages) as JsonObject[];
  // The cache mark of a message is on its last part.
  const user = messages[1]?.content as JsonObject[];
  user[1] = { type: "image_url", image_url: { url: "data:image/jpeg;base64,AAAA", detail: "low" } };
  user[4] = { ...user[4], ...mark };
  delete messages[1]?.cache_control;
  const { reasoning_details } = messages[2] ?? {};
  messages[2] = {
    role: "assistant",
    content: "A wheel.",
    reasoning_details: reasoning_details ?? null,
    refusal: "I will not say whose.\nNor where.",
  };
  messages[3] = { role: "assistant", content: "", ...mark };
  const { models: _, provider: __, max_tokens, reasoning: ___, stream: ____, stream_options: _____, ...rest } = body;
  assertEquals(writeBack(body, target), {
    ...rest,
    model: "thinker-1",
    messages,
    max_completion_tokens: max_tokens,
    reasoning_effort: "medium",
  });
  assertEquals(target.dropped.names, ["reasoning.summary", "reasoning.trace"]);
});

Deno.test("writePrompt() keeps a member called __proto__ as a member", () => {
  const body = JSON.parse('{"model":"a","messages":[{"role":"user","content":"Hi"}],"__proto__":{"a":1}}');
  assert(JSON.stringify(writeBack(body, targetOf())).includes('"__proto__":{"a":1}'));
});

Deno.test("writePrompt() writes files as parts, and text files as text", () => {
  const pdf = { kind: "bytes", mediaType: "application/pdf", base64: "JVBERi0=" } as const;
  const cases: [block: ContentBlock, content: Json][] = [
    [{ type: "media", media: pdf, name: "a.pdf" }, [{
      type: "file",
      file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" },
    }]],
    [{ type: "media", media: pdf }, [{
      type: "file",
      file: { filename: "document", file_data: "data:application/pdf;base64,JVBERi0=" },
    }]],
    [{ type: "media", media: { kind: "bytes", mediaType: "text/plain", base64: "SGk=" }, name: "a.txt" }, "a.txt\nHi"],
    [{ type: "media", media: { kind: "bytes", mediaType: "audio/mpeg", base64: "AAAA" } }, [{
      type: "input_audio",
      input_audio: { data: "AAAA", format: "mp3" },
    }]],
    [{ type: "media", media: { kind: "bytes", mediaType: "image/png", base64: "AAAA" } }, [{
      type: "image_url",
      image_url: { url: "data:image/png;base64,AAAA" },
    }]],
  ];
  for (const [block, content] of cases) {
    assertEquals(writeMessages([{ role: "user", blocks: [block] }]), [{ role: "user", content }]);
  }
  const url: ContentBlock = {
    type: "media",
    media: { kind: "url", url: "https://example.com/a.pdf", mediaType: "application/pdf" },
  };
  const error = assertThrows(() => writeMessages([{ role: "user", blocks: [url] }]), GatewayError);
  assertEquals([error.kind, error.param], ["invalid", "messages"]);
});

Deno.test("writePrompt() returns reasoning to upstreams that accept it, and names it elsewhere", () => {
  const signed: ContentBlock = { type: "reasoning", text: "Plan.", signature: { issuer: "anthropic", value: "c2ln" } };
  const plain: ContentBlock = { type: "reasoning", text: "Hmm." };
  const gemini: ContentBlock = {
    type: "reasoning",
    text: "",
    hidden: true,
    signature: { issuer: "google-gemini-v1", value: "zzz", id: "r1" },
  };
  const entry = { type: "reasoning.text", text: "Plan.", signature: "c2ln", format: "anthropic-claude-v1", id: null };
  const cases: [blocks: ContentBlock[], target: WriteTarget, members: JsonObject, dropped: string[]][] = [
    [[plain, signed], targetOf(), {}, ["messages.thinking"]],
    [[plain, plain], targetOf({ dialect: { unsignedReasoning: true } }), { reasoning_content: "Hmm.\n\nHmm." }, []],
    [
      [signed, plain],
      targetOf({ issuer: "anthropic", dialect: { reasoningDetails: true } }),
      { reasoning_details: [{ ...entry, index: 0 }] },
      ["messages.thinking"],
    ],
    [[signed], targetOf({ issuer: "openai", dialect: { reasoningDetails: true } }), {}, ["messages.thinking"]],
    [
      [gemini],
      targetOf({ issuer: "google-gemini-v1", dialect: { reasoningDetails: true } }),
      {
        reasoning_details: [{
          type: "reasoning.encrypted",
          data: "zzz",
          id: "r1",
          format: "google-gemini-v1",
          index: 0,
        }],
      },
      [],
    ],
  ];
  for (const [blocks, target, members, dropped] of cases) {
    const message: Message = { role: "assistant", blocks: [...blocks, { type: "text", text: "Hi" }] };
    assertEquals(writeMessages([message], target), [{ role: "assistant", content: "Hi", ...members }]);
    assertEquals(target.dropped.names, dropped);
  }
});

Deno.test("effortOfBudget() has a threshold per effort", () => {
  const cases: [number, string][] = [[1_024, "low"], [2_047, "low"], [2_048, "medium"], [8_192, "high"], [
    24_576,
    "xhigh",
  ]];
  for (const [budget, effort] of cases) assertEquals(effortOfBudget(budget), effort);
});

Deno.test("writePrompt() requests usage in every stream, and hashes long user ids", () => {
  assertEquals(write({ stream: true, includeUsage: false }).stream_options, { include_usage: true });
  const user = "u".repeat(65);
  const { user: written } = write({ user });
  assert(typeof written === "string" && /^[0-9a-f]{64}$/.test(written));
  assertEquals(write({ user }).user, written);
  assertEquals(write({ user: "u".repeat(64) }).user, "u".repeat(64));
});

Deno.test("writePrompt() writes one message for an assistant turn", () => {
  const cases: [blocks: ContentBlock[], message: JsonObject][] = [
    [[{ type: "text", text: "A" }, { type: "text", text: "B" }], { content: "AB" }],
    [[], { content: "" }],
    [[{ type: "refusal", text: "No." }], { content: null, refusal: "No." }],
    [
      [
        { type: "text", text: "A" },
        { type: "tool_call", id: "c1", name: "look", arguments: "" },
        { type: "text", text: "B" },
        { type: "tool_call", id: "c2", name: "sql", arguments: "select 1", custom: true },
      ],
      {
        content: "AB",
        tool_calls: [
          { id: "c1", type: "function", function: { name: "look", arguments: "{}" } },
          { id: "c2", type: "custom", custom: { name: "sql", input: "select 1" } },
        ],
      },
    ],
  ];
  for (const [blocks, message] of cases) {
    assertEquals(writeMessages([{ role: "assistant", blocks }]), [{ role: "assistant", ...message }]);
  }
});

Deno.test("writePrompt() writes the reasoning effort", () => {
  const cases: [reasoning: Reasoning, effort: string | undefined, dropped: string[]][] = [
    [{ effort: "high" }, "high", []],
    [{ effort: "minimal" }, "low", ["output_config.effort"]],
    [{ effort: "max" }, "xhigh", ["output_config.effort"]],
    [{ mode: "off" }, "none", []],
    [{ mode: "adaptive" }, "medium", []],
    [{ mode: "adaptive", effort: "low" }, "low", []],
    [{ mode: "manual", budgetTokens: 1024 }, "low", []],
    [{ mode: "manual", budgetTokens: 100_000 }, "xhigh", []],
    [{ display: "summarized" }, undefined, []],
    [{ effort: "low", encrypted: true }, "low", ["include"]],
  ];
  for (const [reasoning, effort, dropped] of cases) {
    const target = targetOf();
    assertEquals([write({ reasoning }, target).reasoning_effort, target.dropped.names], [effort, dropped]);
  }
  const onlyHigh = targetOf({ row: { reasoning: { modes: ["adaptive"], efforts: ["high"] } } });
  assertEquals(write({ reasoning: { mode: "off" } }, onlyHigh).reasoning_effort, "high");
  assertEquals(onlyHigh.dropped.names, ["thinking.type"]);
  assertEquals("reasoning_effort" in write({ reasoning: { mode: "adaptive" } }, onlyHigh), false);
  const none = targetOf({ row: { reasoning: undefined } });
  assertEquals("reasoning_effort" in write({ reasoning: { mode: "off" } }, none), false);
  assertEquals(none.dropped.names, []);
});
