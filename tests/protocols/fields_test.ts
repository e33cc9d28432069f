import { assertEquals, assertThrows } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { CLIENT_CODECS } from "../../lib/protocols/client_codecs.ts";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { checkBody } from "../../lib/protocols/fields.ts";

Deno.test("the error for the body of another endpoint names that endpoint", () => {
  const messages = [{ role: "user", content: "Hi" }];
  const contents = [{ role: "user", parts: [{ text: "Hi" }] }];
  const cases: [Protocol, JsonObject, param: string, endpoint: string | undefined][] = [
    ["chat", { model: "a/b", input: "Hi" }, "messages", "/v1/responses"],
    ["chat", { model: "a/b", contents }, "messages", "/v1beta/models/{model}:generateContent"],
    ["chat", { input: "Hi" }, "model", "/v1/responses"],
    ["chat", { model: "a/b" }, "messages", undefined],
    ["chat", { messages, input: "Hi" }, "model", undefined],
    ["chat", { model: "a/b", messages: [{ role: "user" }] }, "messages[0].content", undefined],
    ["responses", { model: "a/b", messages }, "input", "/v1/chat/completions"],
    ["messages", { model: "a/b", max_tokens: 9, input: "Hi" }, "messages", "/v1/responses"],
    ["gemini", { model: "a/b", messages }, "contents", "/v1/chat/completions"],
  ];
  for (const [protocol, body, param, endpoint] of cases) {
    const error = assertThrows(() => checkBody(CLIENT_CODECS[protocol].schema, body), GatewayError);
    assertEquals(error.param, param);
    const missing = `Missing required parameter: ${param}`;
    assertEquals(error.message.startsWith(missing), true, error.message);
    assertEquals(error.message.includes(`POST ${endpoint}`), endpoint !== undefined, error.message);
    if (endpoint === undefined) assertEquals(error.message, missing);
  }
});

Deno.test("the error for an unknown kind of object lists the kinds", () => {
  const messages = [{ role: "user", content: "Hi" }];
  const cases: [members: JsonObject, param: string, expected: string][] = [
    [{ tools: [{ name: "f" }] }, "tools[0].type", '"function", "custom"'],
    [{ response_format: { type: "xml" } }, "response_format.type", '"text", "json_object", "json_schema"'],
  ];
  for (const [members, param, expected] of cases) {
    const body = { model: "a/b", messages, ...members };
    const error = assertThrows(() => checkBody(CLIENT_CODECS.chat.schema, body), GatewayError);
    assertEquals(error.message, `Invalid value for ${param}: Expected one of ${expected}`);
  }
});
