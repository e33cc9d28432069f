import { assertEquals, assertThrows } from "@std/assert";
import { z } from "zod";
import { GatewayError } from "../../../lib/errors.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";
import { checkBody } from "../../../lib/protocols/fields.ts";
import { request } from "./requests.ts";

/** Path of the member in the error; `undefined` where the body is valid. */
function refused(body: JsonObject): string | undefined {
  try {
    checkBody(chat.schema, body);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError && error.kind === "invalid") return error.param;
    throw error;
  }
}

const fn = { type: "function", function: { name: "look" } };
const custom = { type: "custom", custom: { name: "sql" } };

Deno.test("the chat schema accepts each parameter in its range and names rejected ones", () => {
  const cases: [name: string, accepted: Json[], refused: [value: Json, param: string][]][] = [
    ["model", ["a", "acme/x:free"], [[null, "model"], ["", "model"], [3, "model"]]],
    ["max_completion_tokens", [1, 128_000, -1, null], [[0, "max_completion_tokens"], [1.5, "max_completion_tokens"]]],
    ["max_tokens", [1, -1, null], [[0, "max_tokens"], [-2, "max_tokens"], ["9", "max_tokens"], [
      2 ** 53,
      "max_tokens",
    ]]],
    ["temperature", [0, 2, null], [[2.1, "temperature"], [-0.1, "temperature"], ["1", "temperature"]]],
    ["top_p", [0, 1, null], [[1.1, "top_p"]]],
    ["top_k", [-1, 0, 40, null], [[-2, "top_k"], [0.5, "top_k"]]],
    ["min_p", [0, 1, null], [[1.1, "min_p"]]],
    ["top_a", [0, 1, null], [[-1, "top_a"]]],
    ["repetition_penalty", [0, 2, null], [[2.5, "repetition_penalty"]]],
    ["frequency_penalty", [-2, 2, null], [[2.1, "frequency_penalty"]]],
    ["presence_penalty", [-2, 2, null], [[-2.1, "presence_penalty"]]],
    ["n", [1, 128, null], [[0, "n"], [129, "n"]]],
    ["stop", ["END", [], ["a", "b", "c", "d"], null], [
      ["", "stop"],
      ["a".repeat(1025), "stop"],
      [7, "stop"],
      [["a", 1], "stop[1]"],
      [Array(17).fill("a"), "stop"],
    ]],
    ["logit_bias", [{ "1": -100, "2": 100 }, {}, null], [[{ "1": 101 }, "logit_bias.1"], [[], "logit_bias"]]],
    ["logprobs", [true, null], [["yes", "logprobs"]]],
    ["top_logprobs", [0, 20, null], [[21, "top_logprobs"]]],
    ["seed", [-1, 0, Number.MAX_SAFE_INTEGER, null], [[0.5, "seed"]]],
    ["stream", [true, false, null], [["true", "stream"]]],
    ["stream_options", [{}, { include_usage: true, include_obfuscation: false }, null], [
      [{ include_usage: 1 }, "stream_options.include_usage"],
      [true, "stream_options"],
    ]],
    ["tools", [[], [fn, custom], [{ type: "vendor:search", any: [1] }], null], [
      [{}, "tools"],
      [[{ type: "function" }], "tools[0].function"],
      [[fn, { type: "function", function: { name: "a b" } }], "tools[1].function.name"],
      [[{ type: "function", function: { name: "a", parameters: "{}" } }], "tools[0].function.parameters"],
      [[{ type: "custom", custom: { name: "a", format: { type: "regex" } } }], "tools[0].custom.format.type"],
      [
        [{ type: "custom", custom: { name: "a", format: { type: "grammar", grammar: { syntax: "x" } } } }],
        "tools[0].custom.format.grammar.syntax",
      ],
      [[{ name: "a" }], "tools[0].type"],
      [Array(257).fill(fn), "tools"],
    ]],
    ["tool_choice", [
      "none",
      "auto",
      "required",
      fn,
      custom,
      { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [fn, custom] } },
      null,
    ], [
      ["any", "tool_choice"],
      [{ type: "tool", name: "look" }, "tool_choice.type"],
      [{ type: "function", name: "look" }, "tool_choice.function"],
      [{ type: "allowed_tools", allowed_tools: { mode: "none", tools: [fn] } }, "tool_choice.allowed_tools.mode"],
      [{ type: "allowed_tools", allowed_tools: { mode: "auto", tools: [] } }, "tool_choice.allowed_tools.tools"],
    ]],
    ["parallel_tool_calls", [true, false, null], [[0, "parallel_tool_calls"]]],
    ["functions", [[{ name: "a" }], null], [[[], "functions"], [[{}], "functions[0].name"]]],
    ["function_call", ["auto", "none", { name: "a" }, null], [["required", "function_call"], [
      {},
      "function_call.name",
    ]]],
    ["response_format", [
      { type: "text" },
      { type: "json_object" },
      { type: "json_schema", json_schema: { name: "n", schema: {}, strict: null } },
      null,
    ], [
      [{ type: "xml" }, "response_format.type"],
      [{ type: "json_schema" }, "response_format.json_schema"],
      [{ type: "json_schema", json_schema: { schema: {} } }, "response_format.json_schema.name"],
      [{ type: "json_schema", json_schema: { name: "a b" } }, "response_format.json_schema.name"],
    ]],
    ["reasoning_effort", ["none", "minimal", "low", "medium", "high", "xhigh", "max", "default", null], [
      ["huge", "reasoning_effort"],
    ]],
    ["reasoning", [
      {},
      { effort: "low", exclude: true, enabled: true, summary: "auto" },
      { max_tokens: 1024 },
      { effort: null, later: 1 },
      null,
    ], [
      [{ effort: "huge" }, "reasoning.effort"],
      [{ max_tokens: 0 }, "reasoning.max_tokens"],
      [{ summary: "long" }, "reasoning.summary"],
      ["high", "reasoning"],
    ]],
    ["include_reasoning", [true, false, null], [["no", "include_reasoning"]]],
    ["verbosity", ["low", "medium", "high", null], [["loud", "verbosity"]]],
    ["modalities", [["text"], ["text", "audio"], null], [[["smell"], "modalities[0]"]]],
    ["prediction", [
      { type: "content", content: "a" },
      { type: "content", content: [{ type: "text", text: "a" }] },
      null,
    ], [
      [{ type: "guess", content: "a" }, "prediction.type"],
      [{ type: "content", content: 1 }, "prediction.content"],
    ]],
    ["metadata", [{}, { a: "b" }, null], [
      [{ a: 1 }, "metadata.a"],
      [Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, ""])), "metadata"],
    ]],
    ["store", [true, false, null], [["no", "store"]]],
    ["service_tier", ["auto", "default", "flex", "scale", "priority", "fast", null], [["gold", "service_tier"]]],
    ["prompt_cache_key", ["k", null], [[1, "prompt_cache_key"]]],
    ["prompt_cache_options", [{ mode: "explicit", ttl: "30m" }, null], [[{ mode: "x" }, "prompt_cache_options.mode"]]],
    ["prompt_cache_retention", ["in_memory", "24h", null], [["1y", "prompt_cache_retention"]]],
    ["safety_identifier", ["x".repeat(64), null], [["x".repeat(65), "safety_identifier"]]],
    ["user", ["x".repeat(200), null], [[1, "user"]]],
    ["session_id", ["s", null], [["s".repeat(257), "session_id"]]],
    ["web_search_options", [{}, { search_context_size: "low", user_location: { type: "approximate" } }, null], [
      [{ search_context_size: "tiny" }, "web_search_options.search_context_size"],
    ]],
    ["provider", [{ order: ["a"], sort: "price" }, null], [[{ sort: "beauty" }, "provider.sort"]]],
    ["models", [["a"], [], null], [[[1], "models[0]"], [Array(17).fill("a"), "models"]]],
    ["never_heard_of", [1, null, { a: [] }], []],
  ];
  for (const [name, accepted, wrong] of cases) {
    for (const value of accepted) assertEquals(refused(request({ [name]: value })), undefined, `${name} ${value}`);
    for (const [value, param] of wrong) assertEquals(refused(request({ [name]: value })), param, JSON.stringify(value));
  }
});

Deno.test("a rejected parameter of several types names what is expected", () => {
  const wrong: [JsonObject, string][] = [
    [{ sort: "beauty" }, 'sort: Expected one of "price", "throughput", "latency", "exacto", or an object'],
    [{ preferred_max_latency: "3" }, "preferred_max_latency: Expected a number, or an object"],
  ];
  for (const [provider, message] of wrong) {
    assertThrows(() => checkBody(chat.schema, request({ provider })), GatewayError, `provider.${message}`);
  }
});

Deno.test("the chat schema accepts messages of clients and names the problem of others", () => {
  const image = { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "original" } };
  const call = { id: "c1", type: "function", function: { name: "a.b:c d", arguments: "not json" } };
  const accepted: JsonObject[] = [
    { role: "system", content: "a" },
    { role: "developer", content: [{ type: "text", text: "a" }], name: "n" },
    { role: "user", content: "" },
    { role: "user", content: [] },
    { role: "user", content: [image, { type: "input_audio", input_audio: { data: "AA", format: "wav" } }] },
    { role: "user", content: [{ type: "file", file: { file_data: "data:,a" } }], cache_control: { type: "ephemeral" } },
    { role: "user", content: [{ type: "text", text: "a", cache_control: null }], name: null },
    { role: "assistant" },
    { role: "assistant", content: null, refusal: null, tool_calls: null, function_call: null, audio: null },
    { role: "assistant", content: [{ type: "refusal", refusal: "no" }], tool_calls: [call] },
    { role: "assistant", content: "", reasoning_details: [{ type: "reasoning.later", x: 1 }], reasoning_content: "" },
    { role: "tool", tool_call_id: "c1", content: [{ type: "text", text: "a" }, image] },
    { role: "function", name: "f", content: null },
  ];
  for (const message of accepted) {
    assertEquals(refused(request({ messages: [message] })), undefined, message.role as string);
  }

  const wrong: [message: Json, param: string][] = [
    ["hi", "messages[0]"],
    [{}, "messages[0].role"],
    [{ role: "robot", content: "a" }, "messages[0].role"],
    [{ role: "system" }, "messages[0].content"],
    [{ role: "system", content: [image] }, "messages[0].content[0].type"],
    [{ role: "user", content: null }, "messages[0].content"],
    [{ role: "user", content: 3 }, "messages[0].content"],
    [{ role: "user", content: [{ type: "text" }] }, "messages[0].content[0].text"],
    [{ role: "user", content: [image, { type: "video_url" }] }, "messages[0].content[1].type"],
    [{ role: "user", content: [{ type: "image_url", image_url: "https://a" }] }, "messages[0].content[0].image_url"],
    [
      { role: "user", content: [{ type: "image_url", image_url: { url: "https://a", detail: "max" } }] },
      "messages[0].content[0].image_url.detail",
    ],
    [{ role: "user", content: "a", cache_control: { type: "forever" } }, "messages[0].cache_control.type"],
    [{ role: "assistant", content: [image] }, "messages[0].content[0].type"],
    [{ role: "assistant", tool_calls: [{ type: "function" }] }, "messages[0].tool_calls[0].id"],
    [{ role: "assistant", tool_calls: [{ id: "c", type: "mcp" }] }, "messages[0].tool_calls[0].type"],
    [
      { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "a", arguments: {} } }] },
      "messages[0].tool_calls[0].function.arguments",
    ],
    [{ role: "tool", content: "a" }, "messages[0].tool_call_id"],
    [{ role: "tool", tool_call_id: "c1" }, "messages[0].content"],
    [{ role: "function", content: "a" }, "messages[0].name"],
  ];
  for (const [message, param] of wrong) {
    assertEquals(refused(request({ messages: [message] })), param, JSON.stringify(message));
  }
  assertEquals(refused({ model: "a" }), "messages");
  assertEquals(refused(request({ messages: [] })), "messages");
  assertEquals(refused(request({ messages: Array(4097).fill({ role: "user", content: "a" }) })), "messages");
});

Deno.test("the chat schema lists the alternatives for an unknown kind", () => {
  const body = request({ messages: [{ role: "user", content: [{ type: "video_url" }] }] });
  assertThrows(
    () => checkBody(chat.schema, body),
    GatewayError,
    "messages[0].content[0].type: Expected a part of type text, image_url, input_audio or file",
  );
  assertThrows(
    () => checkBody(chat.schema, request({ messages: [{ role: "robot", content: "a" }] })),
    GatewayError,
    "Expected a role of system, developer, user, assistant, tool or function",
  );
});

Deno.test("the chat schema can be exported as JSON Schema", () => {
  const schema = z.toJSONSchema(chat.schema, { io: "input" });
  assertEquals(schema.type, "object");
  assertEquals(schema.required, ["model", "messages"]);
});
