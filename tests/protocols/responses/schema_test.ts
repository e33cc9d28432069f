import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { z } from "zod";
import { GatewayError } from "../../../lib/errors.ts";
import { type Json, type JsonObject, parseJson } from "../../../lib/json/mod.ts";
import { checkBody } from "../../../lib/protocols/fields.ts";
import { RESPONSES_ITEMS } from "../../../lib/protocols/canonical/vendor_blocks.ts";
import { responses } from "../../../lib/protocols/responses/mod.ts";

const BODY = { model: "a/b", input: "Hi" };

/** An invalid value of a parameter, and the path in the error where it is not the parameter itself. */
type Refused = [value: Json, param?: string];

Deno.test("the schema accepts each parameter in its range and names rejected ones", () => {
  const cases: [name: string, accepted: Json[], refused: Refused[]][] = [
    ["model", ["m", "a/b"], [[null], [""], [3], ["m".repeat(257)]]],
    ["input", ["", "Hi", [{ role: "user", content: "Hi" }]], [[null], [3], [{}], [[]], [[3], "input[0]"]]],
    ["instructions", ["", "Be kind", null, [{ role: "system", content: "a" }]], [
      [3],
      [[{ role: "system" }], "instructions[0].content"],
    ]],
    ["stream", [true, false, null], [["true"], [1]]],
    ["stream_options", [{}, { include_obfuscation: false }, { later: 1 }, null], [
      [true],
      [{ include_obfuscation: 1 }, "stream_options.include_obfuscation"],
    ]],
    ["max_output_tokens", [1, 15, 200_000, null], [[0], [1.5], ["9"], [-1], [2e9]]],
    ["max_tool_calls", [1, null], [[0], [1.5]]],
    ["temperature", [0, 0.5, 2, null], [[-0.1], [2.1], ["1"]]],
    ["top_p", [0, 1, null], [[-0.1], [1.1]]],
    ["top_logprobs", [0, 20, null], [[-1], [21], [0.5]]],
    ["presence_penalty", [-2, 2, null], [[-2.1], [3]]],
    ["frequency_penalty", [-2, 2, null], [[-2.1], [3]]],
    ["parallel_tool_calls", [true, false, null], [["no"]]],
    ["truncation", ["auto", "disabled", null], [["middle"], [true]]],
    ["store", [true, false, null], [["yes"]]],
    ["metadata", [{}, { a: "b" }, null], [[{ a: 1 }, "metadata.a"], ["a"], [{ a: "x".repeat(513) }, "metadata.a"]]],
    ["service_tier", ["auto", "flex", "ultrafast", null], [[""], ["gold"], [1]]],
    ["user", ["u", null], [[1]]],
    ["safety_identifier", ["u".repeat(64), null], [[1], ["u".repeat(65)]]],
    ["prompt_cache_key", ["u", null], [[1]]],
    ["prompt_cache_retention", ["24h", "in_memory", null], [["1h"], [24]]],
    ["prompt_cache_options", [{}, { mode: "explicit", ttl: "30m" }, null], [
      ["explicit"],
      [{ mode: "both" }, "prompt_cache_options.mode"],
    ]],
    ["include", [[], ["reasoning.encrypted_content"], null], [["reasoning.encrypted_content"], [[1], "include[0]"]]],
    ["background", [true, false, null], [["no"]]],
    ["previous_response_id", ["resp_1", null], [[1]]],
    ["conversation", ["conv_1", { id: "conv_1" }, null], [[1]]],
    ["prompt", [{ id: "p" }, null], [[1]]],
    ["provider", [{ order: ["a"], later: 1 }, null], [[{ order: "a" }, "provider.order"]]],
    ["models", [["a/b"], null], [["a/b"], [[""], "models[0]"], [Array(17).fill("a")]]],
    ["reasoning", [
      {},
      null,
      { effort: "xhigh", summary: "detailed", context: "auto", mode: "pro" },
      { effort: null, summary: null },
      { generate_summary: "concise" },
      { max_tokens: 100, enabled: true },
    ], [
      ["high"],
      [{ effort: "huge" }, "reasoning.effort"],
      [{ summary: true }, "reasoning.summary"],
      [{ max_tokens: 0 }, "reasoning.max_tokens"],
      [{ context: "none" }, "reasoning.context"],
      [{ mode: "fast" }, "reasoning.mode"],
    ]],
    ["text", [
      {},
      null,
      { format: null, verbosity: null },
      { format: { type: "text" }, verbosity: "high" },
      { format: { type: "json_object" } },
      { format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: null } },
    ], [
      ["json"],
      [{ verbosity: "huge" }, "text.verbosity"],
      [{ format: { type: "xml" } }, "text.format.type"],
      [{ format: { type: "json_schema", schema: {} } }, "text.format.name"],
      [{ format: { type: "json_schema", name: "n" } }, "text.format.schema"],
    ]],
    ["tools", [
      [],
      null,
      [{ type: "function", name: "f" }],
      [{ type: "function", name: "f", description: null, parameters: null, strict: null, later: 1 }],
      [{ type: "custom", name: "f", format: { type: "text" } }],
      [{ type: "custom", name: "f", format: { type: "grammar", syntax: "regex", definition: "a" } }],
      [{ type: "namespace", name: "n", description: "d", tools: [{ type: "function", name: "f" }] }],
      [{ type: "web_search" }, { type: "tool_search" }, { type: "mcp", server_label: "s" }],
      [{ type: "acme:search" }],
    ], [
      [{}],
      [[{}], "tools[0].type"],
      [[{ type: "function" }], "tools[0].name"],
      [[{ type: "function", name: "a b" }], "tools[0].name"],
      [[{ type: "function", name: "f", parameters: "{}" }], "tools[0].parameters"],
      [[{ type: "function", name: "f", strict: "yes" }], "tools[0].strict"],
      [[{ type: "custom", name: "f", format: { type: "grammar", syntax: "regex" } }], "tools[0].format.definition"],
      [[{ type: "namespace", name: "n", tools: [] }], "tools[0].tools"],
      [[{ type: "namespace", name: "n", tools: [{ type: "function" }] }], "tools[0].tools[0].name"],
      [Array(257).fill({ type: "web_search" })],
    ]],
    ["tool_choice", [
      "auto",
      "none",
      "required",
      null,
      { type: "function", name: "f" },
      { type: "custom", name: "f" },
      { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "f" }] },
      { type: "web_search" },
    ], [
      ["any"],
      [3],
      [{ type: "function" }, "tool_choice.name"],
      [{ type: "allowed_tools", mode: "any", tools: [{ type: "function" }] }, "tool_choice.mode"],
      [{ type: "allowed_tools", mode: "auto", tools: [] }, "tool_choice.tools"],
    ]],
    ["a_member_of_tomorrow", [1, null, { a: [] }], []],
  ];
  for (const [name, accepted, refused] of cases) {
    for (const value of accepted) checkBody(responses.schema, { ...BODY, [name]: value });
    for (const [value, param = name] of refused) {
      const body = { ...BODY, [name]: value };
      const error = assertThrows(
        () => checkBody(responses.schema, body),
        GatewayError,
        undefined,
        JSON.stringify(body),
      );
      assertEquals([error.kind, error.param], ["invalid", param], error.message);
    }
  }
});

Deno.test("the schema names missing members", () => {
  const cases: [body: JsonObject, param: string][] = [
    [{ input: "Hi" }, "model"],
    [{ model: "a/b" }, "input"],
    [{ ...BODY, input: [{ role: "user" }] }, "input[0].content"],
    [{ ...BODY, input: [{ id: "msg_1", content: "Hi" }] }, "input[0].role"],
  ];
  for (const [body, param] of cases) {
    const error = assertThrows(() => checkBody(responses.schema, body), GatewayError);
    assertEquals(
      [error.message, error.param, error.code],
      [`Missing required parameter: ${param}`, param, "missing_required_parameter"],
    );
  }
});

Deno.test("the schema describes a number beyond a double as a number", () => {
  const cases: [name: string, message: RegExp][] = [
    ["max_output_tokens", /Expected a number that a 64-bit float holds exactly/],
    ["instructions", /Expected a string or an array of messages/],
    ["user", /Expected a string, not a number/],
  ];
  for (const [name, message] of cases) {
    const body = parseJson(`{"model":"a/b","input":"Hi","${name}":9223372036854775807}`) as JsonObject;
    const error = assertThrows(() => checkBody(responses.schema, body), GatewayError);
    assertMatch(error.message, message);
    assertEquals(error.param, name);
  }
});

Deno.test("the schema accepts every kind of item", () => {
  const items: JsonObject[] = [
    { role: "user", content: "a" },
    { role: "developer", content: [{ type: "input_text", text: "a" }] },
    { role: "assistant", content: [{ type: "output_text", text: "a" }] },
    { type: "message", role: "assistant", content: "a", id: null, status: null, phase: null },
    { type: "message", role: "assistant", content: [{ type: "refusal", refusal: "No" }] },
    { role: "user", content: [{ type: "input_image", image_url: "https://e.com/a.png", file_id: null }] },
    { role: "user", content: [{ type: "input_file", file_data: "data:,a", filename: "a" }] },
    { role: "user", content: [{ type: "input_audio", input_audio: { data: "", format: "wav" } }] },
    { type: "function_call", call_id: "c", name: "f", arguments: "{}", id: null, status: null, namespace: null },
    { type: "function_call_output", call_id: "c", output: "a" },
    { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "a" }] },
    { type: "custom_tool_call", call_id: "c", name: "f", input: "" },
    { type: "custom_tool_call_output", call_id: "c", output: "" },
    { type: "reasoning", id: "rs_1", summary: [] },
    { type: "reasoning", summary: [{ type: "summary_text", text: "a" }], content: null, encrypted_content: null },
    { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "a" }] },
    { type: "additional_tools", role: "developer", tools: [{ type: "custom", name: "x" }] },
    { type: "item_reference", id: "msg_1" },
    { id: "msg_1" },
    ...Object.keys(RESPONSES_ITEMS).map((type) => ({ type })),
  ];
  for (const item of items) checkBody(responses.schema, { ...BODY, input: [item] });
});

Deno.test("the schema names the rejected item", () => {
  const cases: [item: Json, param: string, message: string][] = [
    [{ type: "hologram" }, "input[0].type", 'Unexpected item type "hologram"'],
    [{ type: "acme:hologram" }, "input[0].type", 'Unexpected item type "acme:hologram"'],
    [{ role: "tool", content: "a" }, "input[0].role", "Expected one of "],
    [{ role: "user", content: 3 }, "input[0].content", "Expected a string or content parts"],
    [{ role: "user", content: [{ text: "a" }] }, "input[0].content[0].type", "Expected the type of the content part"],
    [{ role: "user", content: [{ type: "input_video" }] }, "input[0].content[0].type", '"input_video"'],
    [{ role: "user", content: [{ type: "input_text" }] }, "input[0].content[0].text", "Missing"],
    [
      { role: "user", content: [{ type: "input_image", image_url: { url: "https://e.com" } }] },
      "input[0].content[0].image_url",
      "Expected a string",
    ],
    [{ role: "user", content: Array(1025).fill({ type: "text", text: "" }) }, "input[0].content", "Expected a string"],
    [{ type: "function_call", call_id: "c", name: "f" }, "input[0].arguments", "Missing"],
    [{ type: "function_call", call_id: "c", name: "f", arguments: {} }, "input[0].arguments", "Expected a string"],
    [{ type: "function_call", name: "f", arguments: "" }, "input[0].call_id", "Missing"],
    [{ type: "function_call_output", call_id: "c" }, "input[0].output", "Missing"],
    [{ type: "function_call_output", call_id: "c", output: { a: 1 } }, "input[0].output", "Expected a string"],
    [
      { type: "function_call_output", call_id: "c", output: [{ type: "x" }] },
      "input[0].output[0].type",
      'Unexpected content part type "x"',
    ],
    [{ type: "custom_tool_call", call_id: "c", name: "f" }, "input[0].input", "Missing"],
    [{ type: "reasoning", summary: "a" }, "input[0].summary", "Expected an array"],
    [{ type: "reasoning", summary: [{ text: "a" }] }, "input[0].summary[0].type", ""],
    [{ type: "additional_tools", tools: [{ type: "function" }] }, "input[0].tools[0].name", "Missing"],
  ];
  for (const [item, param, message] of cases) {
    const body = { ...BODY, input: [item] };
    const error = assertThrows(() => checkBody(responses.schema, body), GatewayError, message);
    assertEquals([error.kind, error.param], ["invalid", param], error.message);
  }
});

Deno.test("the schema can be exported as JSON Schema", () => {
  const written = z.toJSONSchema(responses.schema, { io: "input" });
  assertEquals(written.required, ["model", "input"]);
});
