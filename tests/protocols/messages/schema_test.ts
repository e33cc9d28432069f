import { assertEquals, assertThrows } from "@std/assert";
import { z } from "zod";
import { GatewayError } from "../../../lib/errors.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import { checkBody } from "../../../lib/protocols/fields.ts";
import { VENDOR_SPECIFIC_TYPES } from "../../../lib/protocols/messages/content_schema.ts";
import { countTokensSchema, messages } from "../../../lib/protocols/messages/mod.ts";

const BODY: JsonObject = { model: "a/b", max_tokens: 4096, messages: [{ role: "user", content: "x" }] };
const TOOL = { name: "f", input_schema: { type: "object" } };

Deno.test("the schema accepts every valid value of a parameter", () => {
  const cases: Record<string, (Json | undefined)[]> = {
    max_tokens: [0, 1, 128_000],
    system: [undefined, null, "", "a", [{ type: "text", text: "a", cache_control: null }], []],
    temperature: [undefined, null, 0, 0.5, 1],
    top_p: [null, 0, 1],
    top_k: [null, 0, 40],
    stop_sequences: [null, [], Array(16).fill("a")],
    stream: [null, true, false],
    tools: [
      null,
      [],
      [TOOL, { ...TOOL, type: "custom", strict: true, description: null }, { ...TOOL, input_schema: {} }],
      [
        { type: "web_search_20260318", name: "web_search", allowed_domains: ["a.test"] },
        { type: "bash_20250124", name: "bash" },
        { type: "text_editor_20250728", name: "str_replace_based_edit_tool" },
        { type: "memory_20250818", name: "memory" },
        { type: "computer_toolset_20260801", display_width_px: 1 },
        { type: "tool_search_tool_bm25", name: "s" },
        { type: "mcp_toolset", mcp_server_name: "m" },
      ],
      Array(256).fill(TOOL),
    ],
    tool_choice: [null, { type: "auto" }, { type: "any" }, { type: "none" }, {
      type: "tool",
      name: "f",
      disable_parallel_tool_use: true,
    }],
    thinking: [
      null,
      { type: "enabled", budget_tokens: 1024, display: "omitted" },
      { type: "adaptive", display: "summarized" },
      { type: "disabled" },
      { type: "between_tools", display: "updates" },
    ],
    output_config: [
      null,
      {},
      { effort: null, format: null },
      ...["low", "medium", "high", "xhigh", "max"].map((effort) => ({ effort })),
      { format: { type: "json_schema", schema: { type: "object" } } },
    ],
    output_format: [null, { type: "json_schema", schema: {} }],
    metadata: [null, {}, { user_id: null }, { user_id: "u".repeat(300) }],
    service_tier: [null, "auto", "standard_only"],
    speed: [null, "fast", "standard"],
    inference_geo: [null, "eu"],
    cache_control: [null, { type: "ephemeral" }, { type: "ephemeral", ttl: "1h" }],
    container: [null, "container_1", { skills: [] }],
    mcp_servers: [null, [], [{ type: "url", name: "m", url: "https://m.test" }]],
    context_management: [null, { edits: [] }],
    diagnostics: [null, { previous_message_id: null }],
    provider: [null, { order: ["a"] }],
    models: [null, ["a/b"]],
    unheard_of: [1, null, {}],
  };
  for (const [name, values] of Object.entries(cases)) {
    for (const value of values) checkBody(messages.schema, { ...BODY, [name]: value });
  }
});

Deno.test("the schema names the rejected parameter", () => {
  const cases: [name: string, value: Json | undefined, param: string][] = [
    ["model", undefined, "model"],
    ["model", "", "model"],
    ["messages", undefined, "messages"],
    ["messages", "a", "messages"],
    ["messages", [], "messages"],
    ["messages", Array(4097).fill({ role: "user", content: "x" }), "messages"],
    ["max_tokens", undefined, "max_tokens"],
    ["max_tokens", null, "max_tokens"],
    ["max_tokens", -1, "max_tokens"],
    ["max_tokens", 1.5, "max_tokens"],
    ["max_tokens", "9", "max_tokens"],
    ["max_tokens", 2 ** 53, "max_tokens"],
    ["system", 1, "system"],
    ["system", [{ type: "image" }], "system[0].type"],
    ["temperature", 1.1, "temperature"],
    ["temperature", -0.1, "temperature"],
    ["top_p", 2, "top_p"],
    ["top_k", -1, "top_k"],
    ["top_k", 0.5, "top_k"],
    ["stop_sequences", "END", "stop_sequences"],
    ["stop_sequences", [1], "stop_sequences[0]"],
    ["stop_sequences", ["a".repeat(1025)], "stop_sequences[0]"],
    ["stop_sequences", Array(17).fill("a"), "stop_sequences"],
    ["stream", "true", "stream"],
    ["tools", Array(257).fill(TOOL), "tools"],
    ["tools", [{ name: "f" }], "tools[0].input_schema"],
    ["tools", [{ input_schema: {} }], "tools[0].name"],
    ["tools", [{ ...TOOL, name: "a b" }], "tools[0].name"],
    ["tools", [{ ...TOOL, input_schema: { type: "array" } }], "tools[0].input_schema.type"],
    ["tools", [{ type: "function", function: { name: "f" } }], "tools[0].type"],
    ["tools", [{ ...TOOL, cache_control: { type: "forever" } }], "tools[0].cache_control.type"],
    ["tool_choice", "auto", "tool_choice"],
    ["tool_choice", { type: "required" }, "tool_choice.type"],
    ["tool_choice", { type: "tool" }, "tool_choice.name"],
    ["thinking", { type: "on" }, "thinking.type"],
    ["thinking", { type: "enabled" }, "thinking.budget_tokens"],
    ["thinking", { type: "enabled", budget_tokens: 1023 }, "thinking.budget_tokens"],
    ["thinking", { type: "adaptive", display: "all" }, "thinking.display"],
    ["output_config", { effort: "minimal" }, "output_config.effort"],
    ["output_config", { format: { type: "json_object" } }, "output_config.format.type"],
    ["output_format", { type: "json_schema" }, "output_format.schema"],
    ["metadata", { user_id: 1 }, "metadata.user_id"],
    ["service_tier", "flex", "service_tier"],
    ["speed", "slow", "speed"],
    ["cache_control", { type: "ephemeral", ttl: "2h" }, "cache_control.ttl"],
    ["mcp_servers", {}, "mcp_servers"],
    ["models", Array(17).fill("a/b"), "models"],
  ];
  for (const [name, value, param] of cases) {
    assertEquals(refusedParam({ ...BODY, [name]: value }), param, `${name}: ${JSON.stringify(value)?.slice(0, 80)}`);
  }
});

Deno.test("the schema names the rejected block", () => {
  const cases: [role: string, content: Json | undefined, param: string, message: string][] = [
    ["developer", "a", "messages[0].role", 'Input should be "user", "assistant" or "system"'],
    ["user", undefined, "messages[0].content", "Missing required parameter"],
    ["user", 5, "messages[0].content", "Expected a string or content blocks"],
    ["user", [{ type: "hologram" }], "messages[0].content[0].type", 'Unexpected content block type "hologram"'],
    ["user", [{ text: "a" }], "messages[0].content[0].type", "Expected the type of the content block"],
    ["user", [{ type: "tool_use" }], "messages[0].content[0].type", 'Unexpected content block type "tool_use"'],
    ["assistant", [{ type: "tool_result" }], "messages[0].content[0].type", "Unexpected content block type"],
    ["system", [{ type: "image" }], "messages[0].content[0].type", "Unexpected content block type"],
    ["user", [{ type: "text" }], "messages[0].content[0].text", "Missing required parameter"],
    [
      "user",
      Array(1025).fill({ type: "text", text: "a" }),
      "messages[0].content",
      "Expected at most 1024 content blocks",
    ],
    ["user", [{ type: "image", source: { type: "ftp" } }], "messages[0].content[0].source.type", '"ftp"'],
    [
      "user",
      [{ type: "image", source: { type: "base64", media_type: "application/pdf", data: "" } }],
      "messages[0].content[0].source.media_type",
      "Expected an image media type",
    ],
    [
      "user",
      [{ type: "document", source: { type: "base64", media_type: "pdf", data: "" } }],
      "messages[0].content[0].source.media_type",
      "Expected a media type",
    ],
    [
      "user",
      [{ type: "tool_result", tool_use_id: "t", content: [{ type: "tool_use" }] }],
      "messages[0].content[0].content[0].type",
      "Unexpected content block type",
    ],
    ["user", [{ type: "tool_result" }], "messages[0].content[0].tool_use_id", "Missing required parameter"],
    [
      "assistant",
      [{ type: "tool_use", id: "t", name: "f", input: "{}" }],
      "messages[0].content[0].input",
      "Expected an object",
    ],
    ["assistant", [{ type: "thinking" }], "messages[0].content[0].thinking", "Missing required"],
    [
      "assistant",
      [{ type: "thinking", thinking: "a", signature: 1 }],
      "messages[0].content[0].signature",
      "Expected a string",
    ],
    ["assistant", [{ type: "redacted_thinking" }], "messages[0].content[0].data", "Missing required parameter"],
  ];
  for (const [role, content, param, message] of cases) {
    const body = { ...BODY, messages: [{ role, content }] };
    const error = assertThrows(() => checkBody(messages.schema, body), GatewayError, message);
    assertEquals(error.param, param, message);
  }
});

Deno.test("the schema accepts blocks of this protocol only", () => {
  for (const type of VENDOR_SPECIFIC_TYPES) {
    const role = type.startsWith("tool_addition") || type.startsWith("tool_removal") ? "system" : "assistant";
    checkBody(messages.schema, { ...BODY, messages: [{ role, content: [{ type, anything: 1 }] }] });
  }
});

Deno.test("a long unknown type is quoted shortened", () => {
  const body = { ...BODY, messages: [{ role: "user", content: [{ type: "x".repeat(10_000) }] }] };
  const error = assertThrows(() => checkBody(messages.schema, body), GatewayError);
  assertEquals(error.message.length < 200, true, error.message);
});

Deno.test("countTokensSchema needs no max_tokens and otherwise the same", () => {
  const { max_tokens: _, ...body } = BODY;
  checkBody(countTokensSchema, body);
  const error = assertThrows(() => checkBody(countTokensSchema, { ...body, tools: {} }), GatewayError);
  assertEquals(error.param, "tools");
});

Deno.test("the schemas can be exported as JSON Schema", () => {
  for (const schema of [messages.schema, countTokensSchema]) {
    const { required } = z.toJSONSchema(schema, { io: "input" });
    assertEquals(required?.includes("messages"), true);
  }
});

function refusedParam(body: JsonObject): string | undefined {
  return assertThrows(() => checkBody(messages.schema, body), GatewayError).param;
}
