import { assert, assertEquals, assertThrows } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { isObject, type Json, type JsonObject } from "../../lib/json/mod.ts";
import { aggregateEvents } from "../../lib/protocols/canonical/aggregate_events.ts";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { CLIENTS, PROTOCOLS, responseContextOf } from "../golden/crossings.ts";
import { readEvents } from "../golden/recorded.ts";
import { crossRequest } from "../golden/requests.ts";

const USER = { role: "user", content: "Go" };
const SAID = { role: "user", parts: [{ text: "Hi" }] };
const NOW = { id: "call_1", type: "function", function: { name: "now", arguments: "{}" } };
const OTHER = { ...NOW, id: "call_2" };

/** A request's body at an upstream. */
function sent(from: Protocol, to: string, body: JsonObject): JsonObject {
  return crossRequest(from, to, { model: "acme/thinker", ...(from === "messages" && { max_tokens: 9_000 }), ...body })
    .body;
}

/** A member of a member. */
function get(value: Json | undefined, ...path: (string | number)[]): Json | undefined {
  return path.reduce<Json | undefined>((at, name) => {
    if (Array.isArray(at)) return at.at(Number(name));
    return isObject(at) ? at[name] : undefined;
  }, value);
}

function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

Deno.test("a signature beside a call returns through every client, to its issuer only", () => {
  const signed = { ...NOW, extra_content: { google: { thought_signature: "c2ln" } } };
  const delta = { tool_calls: [{ index: 0, ...signed }, { index: 1, ...OTHER }] };
  const data = JSON.stringify({ id: "c1", choices: [{ index: 0, delta, finish_reason: "stop" }] });
  const reply = aggregateEvents(readEvents({ protocol: "chat", frames: [{ data }] }));
  const answer = (client: Protocol) => CLIENTS[client].writeReply(reply, responseContextOf(client));
  const results = ["call_1", "call_2"];
  const requests: Record<string, JsonObject> = {
    chat: {
      messages: [
        USER,
        get(answer("chat"), "choices", 0, "message") ?? null,
        ...results.map((id) => ({ role: "tool", tool_call_id: id, content: "12:00" })),
      ],
      tools: [{ type: "function", function: { name: "now" } }],
    },
    responses: {
      input: [
        USER,
        ...list(answer("responses").output),
        ...results.map((id) => ({ type: "function_call_output", call_id: id, output: "12:00" })),
      ],
      tools: [{ type: "function", name: "now" }],
    },
    messages: {
      messages: [USER, { role: "assistant", content: answer("messages").content }, {
        role: "user",
        content: results.map((id) => ({ type: "tool_result", tool_use_id: id, content: "12:00" })),
      }],
      tools: [{ name: "now", input_schema: { type: "object" } }],
    },
    gemini: {
      contents: [SAID, get(answer("gemini"), "candidates", 0, "content") ?? null, {
        role: "user",
        parts: results.map((id) => ({ functionResponse: { id, name: "now", response: { output: "12:00" } } })),
      }],
      tools: [{ functionDeclarations: [{ name: "now" }] }],
    },
  };
  for (const client of PROTOCOLS) {
    const body = sent(client, "chat", requests[client] ?? {});
    assertEquals(get(body, "messages", 1, "tool_calls"), [signed, OTHER], client);
    for (const to of ["messages", "responses", "gemini", "deepseek"]) {
      assert(!JSON.stringify(sent(client, to, requests[client] ?? {})).includes("c2ln"), `${client} to ${to}`);
    }
  }
});

Deno.test("an argument name that the vendor refuses is reported with its tool", () => {
  const toolOf = (name: string, parameters: JsonObject = {}) => ({
    type: "function",
    function: { name, parameters },
  });
  const properties = { "user name": { type: "string" } };
  const tools = [toolOf("fine"), toolOf("odd", { type: "object", properties })];
  const request = (all: JsonObject[]) => ({ messages: [USER], tools: all });
  const error = assertThrows(() => sent("chat", "messages", request(tools)), GatewayError, '"user name"');
  assertEquals([error.kind, error.param], ["invalid", "tools[1]"]);
  assertEquals(list(sent("chat", "responses", request(tools)).tools).length, 2);
  const named = { type: "object", properties: { "user.name-2": { type: "string" } } };
  assertEquals(list(sent("chat", "messages", request([toolOf("even", named)])).tools).length, 1);
});
