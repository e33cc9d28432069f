/** Edge cases that need the whole gateway: headers, statuses, and everything besides translation. */
import { assert, assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { frames } from "../../upstream/frames.ts";
import { paramIn, prompt, PROTOCOLS, WHOLE } from "../../upstream/replies.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";

Deno.test("a beta's body member and header reach its vendor together, and no other vendor", async () => {
  const headers = { "anthropic-beta": "context-management-2025-06-27" };
  const body = prompt("messages", { context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } });
  for (const protocol of PROTOCOLS) {
    await using server = startUpstream(() => json(WHOLE[protocol]));
    await using gateway = startGateway(oneModel(protocol, server.url));
    const response = await gateway.ask("messages", body, { headers });
    assertEquals(response.status, 200, await response.text());
    const [request] = server.requests;
    const own = protocol === "messages";
    assertEquals(request?.headers.get("anthropic-beta") ?? null, own ? headers["anthropic-beta"] : null, protocol);
    assertEquals(request?.body.includes("context_management"), own, protocol);
    assertEquals(response.headers.get("x-sluice-dropped"), own ? null : "context_management", protocol);
  }
});

Deno.test("the size of the input is reported at the start, including system text and tools", async () => {
  // An upstream without final usage: its last interim report is used.
  const { opening, pieces, ending } = frames("chat", ["Hello"], "missing");
  await using server = startUpstream(() => events([...opening, ...pieces, ...ending].join("")));
  await using gateway = startGateway(oneModel("chat", server.url));
  const count = async (more: JsonObject): Promise<number> => {
    const text = await (await gateway.ask("messages", prompt("messages", { stream: true, ...more }))).text();
    return Number(/"message_start".*?"input_tokens":(\d+)/.exec(text)?.[1]);
  };
  const plain = await count({});
  assert(plain > 0);
  const full = await count({
    system: "You answer in the fewest words that will do.",
    tools: [{ name: "get_weather", description: "Tells the weather", input_schema: { type: "object" } }],
  });
  assert(full > plain + 10, `${full} tokens with system text and tools, ${plain} without`);
});

Deno.test("JSON mode over messages removes the code fence around the answer, whole and streamed", async () => {
  const content = [{ type: "text", text: '```json\n{"a":1}\n```' }];
  await using server = startUpstream(({ body }) => {
    const { opening, pieces, ending } = frames("messages", ["```js", 'on\n{"a"', ":1}\n`", "``"], "missing");
    return body.includes('"stream":true')
      ? events([...opening, ...pieces, ...ending].join(""))
      : json({ ...WHOLE.messages, content });
  });
  await using gateway = startGateway(oneModel("messages", server.url));
  const body = prompt("chat", { response_format: { type: "json_object" } });
  const whole = await (await gateway.ask("chat", body)).json();
  assertEquals(whole.choices[0].message.content, '{"a":1}');
  const streamed = await (await gateway.ask("chat", { ...body, stream: true })).text();
  const deltas = [...streamed.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)].map(([, text = ""]) => JSON.parse(text));
  assertEquals(deltas.join(""), '{"a":1}');
});

Deno.test("a schema with maps is asked for in words where the vendor's schemas have none", async () => {
  await using server = startUpstream(() => json({ ...WHOLE.messages, content: [{ type: "text", text: '{"a":"b"}' }] }));
  await using gateway = startGateway(oneModel("messages", server.url));
  const schema = { type: "object", additionalProperties: { type: "string" } };
  const body = prompt("chat", { response_format: { type: "json_schema", json_schema: { name: "map", schema } } });
  const response = await gateway.ask("chat", body);
  assertEquals((await response.json()).choices[0].message.content, '{"a":"b"}');
  assertEquals(response.headers.get("x-sluice-dropped"), "response_format");
  assertEquals(server.requests[0]?.json.output_config, undefined);
  assert(server.requests[0]?.json.system.includes(JSON.stringify(schema)));
});

Deno.test("a refusal of too large a limit names the member that the client sent", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway(oneModel("chat", server.url));
  for (const name of ["max_tokens", "max_completion_tokens"]) {
    const response = await gateway.ask("chat", prompt("chat", { [name]: 1_000_000_000 }));
    const { error } = await response.json();
    assertEquals([response.status, error.param, error.message.split(":")[0]], [400, name, name]);
  }
});

Deno.test("an error of an upstream with another protocol names the client's own parameter, or none", async () => {
  const failure = (param: string, code: string | null = null) =>
    json({ error: { message: "Not so", type: "invalid_request_error", param, code } }, { status: 400 });
  const cases: [asked: string, members: JsonObject, param: string, expected: string | undefined][] = [
    ["responses", {}, "messages[0].content", "input"],
    ["gemini", {}, "messages", "contents"],
    ["responses", { max_output_tokens: 50 }, "max_completion_tokens", "max_output_tokens"],
    ["messages", {}, "max_tokens", "max_tokens"],
    ["responses", { temperature: 0.2 }, "temperature", "temperature"],
    ["responses", {}, "stream_options", undefined],
  ];
  for (const [asked, members, param, expected] of cases) {
    const from = asked as typeof PROTOCOLS[number];
    await using server = startUpstream(() => failure(param));
    await using gateway = startGateway(oneModel("chat", server.url));
    const response = await gateway.ask(from, prompt(from, members));
    const body = await response.json();
    assertEquals(response.status, 400);
    if (from === "messages") assertEquals(body.error.message, `${expected}: Not so`);
    else assertEquals(paramIn(from, body) ?? undefined, expected, `${from}: ${param}`);
  }
  const tooLong = { type: "error", code: "context_length_exceeded", message: "Not so", param: "input" };
  const streamed = events(`data: ${JSON.stringify(tooLong)}\n\n`);
  const nameless = json({ type: "error", error: { message: "prompt is too long: 9 tokens > 8" } }, { status: 400 });
  for (
    const [protocol, answer] of [["responses", failure("input")], ["responses", streamed], [
      "messages",
      nameless,
    ]] as const
  ) {
    await using server = startUpstream(() => answer);
    await using gateway = startGateway(oneModel(protocol, server.url));
    const response = await gateway.ask("chat", prompt("chat", { stream: answer === streamed }));
    assertEquals((await response.json()).error.param, "messages");
  }
});

Deno.test("clients of messages recognize a prompt that is too long for an upstream of another protocol", async () => {
  const error = { message: "Too many tokens", type: "x", param: "messages", code: "context_length_exceeded" };
  await using server = startUpstream(() => json({ error }, { status: 400 }));
  await using gateway = startGateway(oneModel("chat", server.url));
  const body = await (await gateway.ask("messages", prompt("messages"))).json();
  assertEquals(body.error.message, "prompt is too long: Too many tokens");
});
