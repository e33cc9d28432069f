import { assertEquals, assertMatch, assertNotEquals, assertThrows } from "@std/assert";
import type { Message, Prompt, Tool, ToolChoice } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import { readLastUserTurn } from "../../../lib/upstreams/embedded/last_user_turn.ts";
import { chooseCalls } from "../../../lib/upstreams/embedded/plan_answer.ts";
import { assistant, call, promptOf, result, user } from "../../protocols/canonical/messages.ts";

const weather: Tool = {
  type: "function",
  name: "get_weather",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer", minimum: 1 } },
    required: ["city", "days"],
  },
};
const readFile: Tool = { type: "function", name: "readTextFile", namespace: "fs" };
const patch: Tool = { type: "custom", name: "apply-patch" };
const search: Tool = { type: "hosted", from: "messages", value: { type: "web_search_20250305", name: "web_search" } };
const tools = [search, weather, readFile, patch];

function choose(messages: Message[], more: Partial<Prompt> = {}) {
  const prompt = promptOf(messages, { tools, ...more });
  return chooseCalls(prompt, readLastUserTurn(prompt));
}

/** The calls as `name arguments`. */
function called(messages: Message[], more: Partial<Prompt> = {}): string[] {
  return choose(messages, more).calls.map((call) => `${call.name} ${call.arguments}`.trim());
}

Deno.test("chooseCalls() calls the first tool that the text mentions", () => {
  const smallest = 'get_weather {"city":"","days":1}';
  const cases: [string, string[]][] = [
    ["How is the weather in Paris?", [smallest]],
    ["WEATHER!", [smallest]],
    ["Read it", ["readTextFile {}"]],
    ["a file, please", ["readTextFile {}"]],
    ["apply this", ["apply-patch"]],
    ["get the patch", [smallest]],
    ["get it with apply-patch.", ["apply-patch"]],
    ["weathering the storm", []],
    ["web search", []],
    ["hello", []],
    ["", []],
  ];
  for (const [text, expected] of cases) assertEquals(called([user(text)]), expected, text);
});

Deno.test("chooseCalls() reads words of at least three letters, split at _ - . and capitals", () => {
  const cases: [string, string, boolean][] = [
    ["go_to_city", "go to", false],
    ["go_to_city", "city", true],
    ["HTTPFetch2", "fetch", true],
    ["HTTPFetch2", "http", true],
    ["fs.list-all", "list", true],
    ["listItems", "listitems", false],
  ];
  for (const [name, text, expected] of cases) {
    const found = called([user(text)], { tools: [{ type: "function", name }] });
    assertEquals(found.length === 1, expected, `${name}: ${text}`);
  }
});

Deno.test("chooseCalls() respects tool_choice", () => {
  const smallest = 'get_weather {"city":"","days":1}';
  const cases: [ToolChoice, string, string[]][] = [
    [{ type: "auto" }, "weather", [smallest]],
    [{ type: "none" }, "weather", []],
    [{ type: "none" }, "call:get_weather", []],
    [{ type: "required" }, "hello", [smallest]],
    [{ type: "required" }, "a file", ["readTextFile {}"]],
    [{ type: "required" }, "call:apply-patch x", ["apply-patch x"]],
    [{ type: "tool", name: "readTextFile" }, "weather", ["readTextFile {}"]],
    [{ type: "tool", name: "fs.readTextFile" }, "hello", ["readTextFile {}"]],
    [{ type: "tool", name: "apply-patch", custom: true }, "hello", ["apply-patch"]],
    [{ type: "tool", name: "get_weather" }, 'call:get_weather {"city":"Rome"}', ['get_weather {"city":"Rome"}']],
    [{ type: "tool", name: "get_weather" }, "call:readTextFile {}", [smallest]],
    [{ type: "allowed", mode: "auto", names: ["readTextFile"] }, "weather", []],
    [{ type: "allowed", mode: "auto", names: ["readTextFile"] }, "read", ["readTextFile {}"]],
    [{ type: "allowed", mode: "required", names: ["readTextFile"] }, "weather", ["readTextFile {}"]],
  ];
  for (const [toolChoice, text, expected] of cases) {
    assertEquals(called([user(text)], { toolChoice }), expected, `${JSON.stringify(toolChoice)} ${text}`);
  }
});

Deno.test("chooseCalls() rejects a choice that no tool satisfies", () => {
  const choices: [ToolChoice, Tool[]][] = [
    [{ type: "required" }, []],
    [{ type: "required" }, [search]],
    [{ type: "tool", name: "get_time" }, tools],
    [{ type: "tool", name: "web_search" }, tools],
    [{ type: "allowed", mode: "required", names: ["get_time"] }, tools],
    [{ type: "vendor_specific", from: "responses", value: { type: "web_search" } }, tools],
  ];
  for (const [toolChoice, tools] of choices) {
    const error = assertThrows(() => called([user("hi")], { toolChoice, tools }), GatewayError, "Cannot satisfy");
    assertEquals([error.kind, error.param], ["invalid", "tool_choice"]);
  }
});

Deno.test("chooseCalls() makes one call if parallel calls are disabled", () => {
  const text = "call:readTextFile\ncall:apply-patch";
  assertEquals(called([user(text)]), ["readTextFile {}", "apply-patch"]);
  assertEquals(called([user(text)], { parallelToolCalls: false }), ["readTextFile {}"]);
});

Deno.test("chooseCalls() never loops by itself", () => {
  const requests = [user("weather?"), assistant(call("c", "get_weather"))];
  assertEquals(called([...requests, user(result("c", "the weather is fine"))]), []);
  assertEquals(called([...requests, user(result("c", "fine"), "weather?")]), []);
  assertEquals(called(requests), []);
  assertEquals(called([user("call:readTextFile"), assistant(call("c", "readTextFile"))]), []);
  assertEquals(called([...requests, user(result("c", "fine")), assistant("fine"), user("weather?")]).length, 1);
  assertEquals(called([...requests, user(result("c", "fine"), "call:readTextFile")]), ["readTextFile {}"]);
  assertEquals(called([...requests, user(result("c", "fine"))], { toolChoice: { type: "required" } }).length, 1);
});

Deno.test("chooseCalls() marks custom tools and namespaces", () => {
  const { calls } = choose([user("call:fs.readTextFile\ncall:apply-patch a b")]);
  assertEquals(calls.map(({ id: _, ...call }) => call), [
    { type: "tool_call", name: "readTextFile", arguments: "{}", namespace: "fs" },
    { type: "tool_call", name: "apply-patch", arguments: "a b", custom: true },
  ]);
});

Deno.test("chooseCalls() creates deterministic ids, unique in a conversation", () => {
  const messages = [user("call:readTextFile\ncall:readTextFile")];
  const first = choose(messages).calls;
  assertEquals(choose(messages).calls, first);
  assertNotEquals(first[0]?.id, first[1]?.id);
  for (const { id } of first) assertMatch(id, /^call_[0-9a-f]{24}$/);
  const taken = first[0]?.id ?? "";
  const again = choose([user(call(taken), "call:readTextFile\ncall:readTextFile")]).calls;
  assertNotEquals(again[0]?.id, taken);
  assertEquals(again[1]?.id, first[1]?.id);
});

Deno.test("chooseCalls() passes no arguments if a schema allows no object", () => {
  for (const parameters of [{ type: "string" }, { type: "object", required: ["a"], properties: { a: false } }, {}]) {
    assertEquals(called([user("call:t")], { tools: [{ type: "function", name: "t", parameters }] }), ["t {}"]);
  }
});
