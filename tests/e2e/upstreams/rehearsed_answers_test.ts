/** Answers that a client can make the embedded model give, over the wire. */
import { assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { startGateway } from "../../support/gateway.ts";
import { prompt, type PROTOCOLS } from "../../upstream/replies.ts";

Deno.test("an answer in a format is the user's own text if that matches", async () => {
  await using gateway = startGateway({});
  const schema = {
    type: "object",
    properties: { city: { type: "string" }, id: { type: "integer" } },
    required: ["city", "id"],
    additionalProperties: false,
  };
  const cases: [text: string, answer: string][] = [
    ['{"city": "Paris", "id": 12345678901234567890}', '{"city":"Paris","id":12345678901234567890}'],
    ['{"city": "Paris"}', '{"city":"","id":0}'],
    ["Paris", '{"city":"","id":0}'],
  ];
  for (const [content, expected] of cases) {
    const response = await gateway.ask("chat", {
      model: "sluice/echo",
      messages: [{ role: "user", content }],
      response_format: { type: "json_schema", json_schema: { name: "place", strict: true, schema } },
    });
    const { choices: [{ message }] } = await response.json();
    assertEquals(message.content, expected);
  }
});

Deno.test("members without effect in the embedded model are named, or refused if all are required", async () => {
  await using gateway = startGateway({});
  const cases: [protocol: typeof PROTOCOLS[number], more: JsonObject, dropped: string | null][] = [
    ["chat", { temprature: 1, verbosity: "low" }, "temprature, verbosity"],
    ["chat", { messages: [{ role: "user", content: [{ type: "text", text: "Hello", bold: true }] }] }, "bold"],
    ["responses", { temprature: 1, store: false, text: { verbosity: "low" } }, "temprature, text"],
    ["messages", { temprature: 1 }, "temprature"],
    ["messages", { tools: [{ name: "look", input_schema: { type: "object" }, lazy: true }] }, "lazy"],
    ["chat", { temperature: 1, user: "u" }, null],
  ];
  for (const [protocol, more, dropped] of cases) {
    const body = prompt(protocol, { model: "sluice/echo", ...more });
    const response = await gateway.ask(protocol, body);
    await response.text();
    assertEquals([response.status, response.headers.get("x-sluice-dropped")], [200, dropped], JSON.stringify(more));
    const strict = await gateway.ask(protocol, { ...body, provider: { require_parameters: true } });
    const { error } = await strict.json();
    assertEquals(strict.status, dropped === null ? 200 : 400);
    if (dropped !== null) assertMatch(error.message, new RegExp(dropped));
  }
});

Deno.test("the embedded model refuses conversations that vendors refuse", async () => {
  await using gateway = startGateway({});
  const look = { type: "object" };
  const cases: [protocol: typeof PROTOCOLS[number], more: JsonObject, message: RegExp][] = [
    ["chat", { tools: Array(2).fill({ type: "function", function: { name: "look" } }) }, /tool names must be unique/],
    ["responses", { tools: Array(2).fill({ type: "function", name: "look" }) }, /tool names must be unique/],
    ["messages", { tools: Array(2).fill({ name: "look", input_schema: look }) }, /tool names must be unique/],
    ["chat", { messages: [{ role: "tool", tool_call_id: "c1", content: "1" }] }, /must be a response to a preceding/],
    [
      "responses",
      { input: [{ type: "function_call_output", call_id: "c1", output: "1" }] },
      /No tool call found for function call output with call_id c1/,
    ],
    [
      "messages",
      { messages: [{ role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "1" }] }] },
      /unexpected `tool_use_id` found in `tool_result` blocks: c1/,
    ],
    [
      "messages",
      {
        messages: [
          { role: "user", content: "Hello" },
          { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "look", input: {} }] },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "1" }] },
          { role: "assistant", content: "Done" },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "1" }] },
        ],
      },
      /unexpected `tool_use_id`/,
    ],
    [
      "messages",
      { messages: [{ role: "user", content: [{ type: "text", text: "" }, { type: "text", text: "Hello" }] }] },
      /text content blocks must be non-empty/,
    ],
    ["messages", { system: [{ type: "text", text: "" }] }, /text content blocks must be non-empty/],
  ];
  for (const [protocol, more, message] of cases) {
    const response = await gateway.ask(protocol, prompt(protocol, { model: "sluice/echo", ...more }));
    const { error } = await response.json();
    assertEquals(response.status, 400, JSON.stringify(more));
    assertMatch(error.message, message);
  }
});

Deno.test("results that follow their calls are accepted, and so are calls of several messages in a row", async () => {
  await using gateway = startGateway({});
  const call = (id: string): JsonObject => ({ id, type: "function", function: { name: "look", arguments: "{}" } });
  const messages = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: null, tool_calls: [call("c1")] },
    { role: "assistant", content: null, tool_calls: [call("c2")] },
    { role: "tool", tool_call_id: "c2", content: "2" },
    { role: "tool", tool_call_id: "c1", content: "1" },
  ];
  const response = await gateway.ask("chat", prompt("chat", { model: "sluice/echo", messages }));
  assertEquals([response.status, (await response.json()).choices[0].message.content], [200, "2\n1"]);
});
