import { assert, assertEquals, assertThrows } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { aggregateEvents } from "../../lib/protocols/canonical/aggregate_events.ts";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { CLIENTS, PROTOCOLS, responseContextOf } from "../golden/crossings.ts";
import { readEvents } from "../golden/recorded.ts";
import { writeFrames } from "../golden/round_trips.ts";
import { get, list, lost, sent } from "./translated.ts";

const USER = { role: "user", content: "Go" };
const SAID = { role: "user", parts: [{ text: "Hi" }] };
const NOW = { id: "call_1", type: "function", function: { name: "now", arguments: "{}" } };
const OTHER = { ...NOW, id: "call_2" };

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

Deno.test("a signature returns with its call through chat clients that keep nothing else", () => {
  const part = { functionCall: { id: "call_1", name: "now", args: {} }, thoughtSignature: "c2ln" };
  const candidate = { content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 };
  const events = readEvents({ protocol: "gemini", frames: [{ data: JSON.stringify({ candidates: [candidate] }) }] });
  const opened = writeFrames(events, "chat").filter(({ data }) => data !== "[DONE]")
    .flatMap(({ data }) => list(get(JSON.parse(data), "choices", 0, "delta", "tool_calls")))
    .filter((entry) => get(entry, "id") !== undefined);
  const whole = CLIENTS.chat.writeReply(aggregateEvents(events), responseContextOf("chat"));
  const extra_content = get(whole, "choices", 0, "message", "tool_calls", 0, "extra_content") ?? null;
  assertEquals(opened.map((entry) => get(entry, "extra_content")), [extra_content]);
  // Clients also bring conversations that began at Google's OpenAI-compatible endpoint.
  const ofGoogle = { google: { thought_signature: "c2ln" } };
  for (const call of [{ ...NOW, extra_content }, { ...NOW, extra_content: ofGoogle }]) {
    const request = {
      messages: [
        USER,
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: "12:00" },
      ],
      tools: [{ type: "function", function: { name: "now", parameters: { type: "object", properties: {} } } }],
    };
    assertEquals(get(sent("chat", "gemini", request), "contents", 1, "parts"), [part]);
    assertEquals(lost("chat", "gemini", request), []);
    for (const to of ["messages", "responses"]) {
      assert(!JSON.stringify(sent("chat", to, request)).includes("c2ln"), to);
      const [name = ""] = lost("chat", to, request);
      assert(name.endsWith("extra_content"), `${to}: ${name}`);
    }
  }
});

Deno.test("an empty message that is the whole conversation reaches upstreams as a message", () => {
  const prompts = {
    chat: { messages: [{ role: "user", content: "" }] },
    responses: { input: "" },
    messages: { messages: [{ role: "user", content: [] }] },
    gemini: { contents: [{ role: "user", parts: [{ text: "" }] }] },
  };
  for (const from of PROTOCOLS) {
    for (const [to, member] of [["chat", "messages"], ["responses", "input"]] as const) {
      if (from !== to) assertEquals(list(sent(from, to, prompts[from])[member]).length, 1, `${from} to ${to}`);
    }
  }
});
