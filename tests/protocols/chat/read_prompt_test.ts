import { assertEquals, assertThrows } from "@std/assert";
import type { Prompt, Reasoning } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";
import { checkBody } from "../../../lib/protocols/fields.ts";
import agent from "../../fixtures/chat/agent.json" with { type: "json" };
import functions from "../../fixtures/chat/functions.json" with { type: "json" };
import routed from "../../fixtures/chat/routed.json" with { type: "json" };
import { assistantRequest, request } from "./requests.ts";

function read(body: JsonObject): Prompt {
  checkBody(chat.schema, body);
  return chat.readPrompt(body);
}

const PICTURE = { type: "image_url", image_url: { url: "https://example.com/a.png" } };

Deno.test("readPrompt() reads the requests that clients send", () => {
  for (const { request, prompt } of [agent, routed, functions]) {
    assertEquals<unknown>(read(request as JsonObject), prompt);
  }
});

Deno.test("readPrompt() treats null as absent", () => {
  const names = `
    max_completion_tokens max_tokens temperature n stop logit_bias logprobs stream stream_options tools functions
    tool_choice parallel_tool_calls response_format reasoning_effort reasoning provider models safety_identifier
    user`.trim().split(/\s+/);
  const nulls = Object.fromEntries(names.map((name) => [name, null]));
  assertEquals(read(request(nulls)), read(request()));
});

Deno.test("readPrompt() keeps a member called __proto__ as a member", () => {
  const body = JSON.parse('{"model":"a","messages":[{"role":"user","content":"Hi"}],"__proto__":{"polluted":true}}');
  const { unknownMembers } = read(body);
  assertEquals(JSON.stringify(unknownMembers), '{"from":"chat","members":{"__proto__":{"polluted":true}}}');
});

Deno.test("readPrompt() passes raw numbers by reference", () => {
  // The parser's result for a number that a double cannot hold.
  const raw = Object.freeze(Object.assign(Object.create(null), { rawJSON: "9007199254740993" }));
  const parameters = { type: "object", properties: { id: { const: raw } } };
  const [tool] = read(request({ tools: [{ type: "function", function: { name: "a", parameters } }] })).tools;
  assertEquals(tool?.type === "function" && tool.parameters === parameters, true);
});

Deno.test("readPrompt() reads reasoning options", () => {
  const cases: [members: JsonObject, reasoning: Reasoning | undefined][] = [
    [{}, undefined],
    [{ reasoning: {} }, undefined],
    [{ include_reasoning: true }, undefined],
    [{ reasoning_effort: "low" }, { effort: "low" }],
    [{ reasoning_effort: "none" }, { mode: "off", effort: "none" }],
    [{ reasoning: { effort: "xhigh" } }, { effort: "xhigh" }],
    [{ reasoning: { effort: "max" }, reasoning_effort: "max" }, { effort: "max" }],
    [{ reasoning: { max_tokens: 2000 } }, { mode: "manual", budgetTokens: 2000 }],
    [{ reasoning: { max_tokens: 2000, enabled: true } }, { mode: "manual", budgetTokens: 2000 }],
    [{ reasoning: { enabled: true } }, { mode: "adaptive" }],
    [{ reasoning: { enabled: true, effort: "high" } }, { effort: "high" }],
    [{ reasoning: { enabled: false } }, { mode: "off" }],
    [{ reasoning: { enabled: false, effort: "none" } }, { mode: "off", effort: "none" }],
    [{ reasoning: { exclude: true } }, { display: "omitted" }],
    [{ reasoning: { exclude: false } }, undefined],
    [{ include_reasoning: false }, { display: "omitted" }],
    [{ reasoning: { summary: "auto" } }, {
      display: "summarized",
      unknownMembers: { from: "chat", members: { summary: "auto" } },
    }],
  ];
  for (const [members, reasoning] of cases) {
    assertEquals(read(request(members)).reasoning, reasoning, JSON.stringify(members));
  }
});

Deno.test("readPrompt() reads output formats", () => {
  const cases: [format: Json, read: Prompt["format"]][] = [
    [null, undefined],
    [{ type: "text" }, { type: "text" }],
    [{ type: "json_object" }, { type: "json_object" }],
    [{ type: "json_schema", json_schema: { name: "n" } }, { type: "json_schema", name: "n", schema: {} }],
  ];
  for (const [format, expected] of cases) {
    assertEquals(read(request({ response_format: format })).format, expected);
  }
});

Deno.test("readPrompt() rejects contradictions and unsupported requests", () => {
  const look = { type: "function", function: { name: "look" } };
  const user = (part: JsonObject) => request({ messages: [{ role: "user", content: [part] }] });
  const cases: [body: JsonObject, param: string][] = [
    [request({ stream_options: { include_usage: true } }), "stream_options"],
    [request({ max_tokens: 9_000, max_completion_tokens: 5 }), "max_tokens"],
    [request({ stream: false, stream_options: {} }), "stream_options"],
    [request({ top_logprobs: 2 }), "top_logprobs"],
    [request({ top_logprobs: 0, logprobs: false }), "top_logprobs"],
    [request({ modalities: ["text", "audio"] }), "modalities"],
    [request({ audio: { format: "mp3", voice: "ash" } }), "audio"],
    [request({ reasoning_effort: "low", reasoning: { effort: "high" } }), "reasoning_effort"],
    [request({ reasoning: { effort: "high", max_tokens: 2000 } }), "reasoning.max_tokens"],
    [request({ reasoning_effort: "high", reasoning: { max_tokens: 2000 } }), "reasoning.max_tokens"],
    [request({ reasoning: { enabled: false, max_tokens: 2000 } }), "reasoning.enabled"],
    [request({ reasoning_effort: "high", reasoning: { enabled: false } }), "reasoning.enabled"],
    [request({ reasoning: { enabled: true, effort: "none" } }), "reasoning.enabled"],
    [request({ tools: [look], functions: [{ name: "a" }] }), "functions"],
    [request({ tool_choice: "required" }), "tool_choice"],
    [request({ tool_choice: look }), "tool_choice"],
    [request({ functions: [{ name: "a" }], function_call: { name: "b" } }), "function_call"],
    [user({ type: "file", file: { file_id: "file-1" } }), "messages[0].content[0].file.file_id"],
    [user({ type: "file", file: { filename: "a.pdf" } }), "messages[0].content[0].file.file_data"],
    [user({ type: "file", file: { file_data: "JVBERi0=" } }), "messages[0].content[0].file.file_data"],
    [user({ type: "file", file: { file_data: "data:a/b;base64,?" } }), "messages[0].content[0].file.file_data"],
    [user({ type: "image_url", image_url: { url: "data:image/png;base64" } }), "messages[0].content[0].image_url.url"],
    [
      user({ type: "image_url", image_url: { url: "data:image/png;base64,A" } }),
      "messages[0].content[0].image_url.url",
    ],
    [assistantRequest({ audio: { id: "audio_1" } }), "messages[1].audio"],
    [request({ messages: [{ role: "user", content: Array(65).fill(PICTURE) }] }), "messages"],
  ];
  for (const [body, param] of cases) {
    const error = assertThrows(() => read(body), GatewayError, "", JSON.stringify(body));
    assertEquals([error.kind, error.param], ["invalid", param], JSON.stringify(body).slice(0, 200));
  }
});

Deno.test("readPrompt() limits images over all messages", () => {
  const half = { role: "user", content: Array(32).fill(PICTURE) };
  const result = { role: "tool", tool_call_id: "c1", content: [PICTURE] };
  assertEquals(read(request({ messages: [half, half] })).messages.length, 2);
  assertThrows(() => read(request({ messages: [half, half, result] })), GatewayError, "Too many images: 65");
  const file = { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } };
  const files = { role: "user", content: [file] };
  assertEquals(read(request({ messages: [half, half, files] })).messages.length, 3, "as in the other protocols");
});
