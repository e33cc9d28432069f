/** Compaction, over every protocol of upstreams, and the count of a responses request. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { COMPACTION_PROMPT, SUMMARY_START } from "../../../lib/responses/compaction_items.ts";
import { model, oneModel, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";
import { openSocket } from "./sockets.ts";

// deno-lint-ignore no-explicit-any
type Value = Record<string, any>;

const TRIGGER = { type: "compaction_trigger" };
const CONVERSATION = [
  { role: "user", content: "Hello" },
  { role: "assistant", content: "Hi, what is it?" },
  { role: "user", content: [{ type: "input_text", text: "Fix the bug" }] },
];
const TOOLS = [{ type: "function", name: "clock", parameters: { type: "object", properties: {} } }];

function configOf(protocol: typeof PROTOCOLS[number], url: string): JsonObject {
  if (protocol !== "responses") return oneModel(protocol, url);
  // A host that speaks responses and does not support compaction.
  return {
    upstreams: { one: upstream("openai-compatible", url, { protocols: ["responses"] }) },
    models: [model("acme/one", [{ upstream: "one", model: "real-one", protocol }])],
  };
}

function ask(gateway: TestGateway, more: JsonObject): Promise<Response> {
  return gateway.ask("responses", prompt("responses", more));
}

function post(gateway: TestGateway, path: string, body: JsonObject, key = gateway.key): Promise<Response> {
  return fetch(`${gateway.url}/v1/responses/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "acme/one", ...body }),
  });
}

async function whole(response: Response): Promise<Value> {
  const text = await response.text();
  assertEquals(response.status, 200, text);
  return JSON.parse(text);
}

/** The events of a stream. */
async function streamed(response: Response): Promise<Value[]> {
  const text = await response.text();
  assertEquals(response.status, 200, text);
  assertStringIncludes(text, "data: [DONE]");
  return [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = ""]) => JSON.parse(data));
}

for (const protocol of PROTOCOLS) {
  Deno.test(`a trigger gets one compaction item, which returns as the summary: ${protocol}`, async () => {
    await using server = startUpstream(({ stream }) =>
      stream ? events(STREAMED[protocol].join("")) : json(WHOLE[protocol])
    );
    await using gateway = startGateway(configOf(protocol, server.url));
    const input = [...CONVERSATION, TRIGGER];
    const first = await whole(await ask(gateway, { input, tools: TOOLS, text: { verbosity: "low" } }));
    assertEquals(first.output.map(({ type }: Value) => type), ["compaction"]);
    assertEquals([first.status, first.usage.input_tokens], ["completed", 7]);
    const sent = server.requests[0]?.body ?? "";
    assert(!sent.includes("compaction_trigger") && !sent.includes("verbosity"));
    assertStringIncludes(sent, COMPACTION_PROMPT.slice(0, 60));
    assertMatch(JSON.stringify(server.requests[0]?.json), /"(?:tool_choice|mode)":(?:\{"type":)?"none"/i);

    const all = await streamed(await ask(gateway, { input, stream: true }));
    assertEquals(all.map(({ type, sequence_number }) => `${sequence_number} ${type}`), [
      "0 response.created",
      "1 response.in_progress",
      "2 response.output_item.added",
      "3 response.output_item.done",
      "4 response.completed",
    ]);
    const item = all[3]?.item;
    assertEquals(all[4]?.response.output, [item]);
    assert(!JSON.stringify(all).includes("Hello th"));

    for (const [compaction, words] of [[first.output[0], "Hello there"], [item, "Hello thére 🙂"]] as const) {
      await whole(await ask(gateway, { input: [compaction, { role: "user", content: "Go on" }] }));
      const body = JSON.stringify(server.requests.at(-1)?.json);
      assertStringIncludes(body, JSON.stringify(SUMMARY_START + words).slice(1, -1));
      assert(!body.includes('"encrypted_content"'));
    }
    // The answer can be continued by its id, and replaces everything before it.
    await whole(await ask(gateway, { previous_response_id: all[4]?.response.id, input: "Go on" }));
    const body = JSON.stringify(server.requests.at(-1)?.json);
    assertStringIncludes(body, "Hello thére");
    assert(!body.includes("Fix the bug"));

    const other = await gateway.addKey();
    const refused = await gateway.ask("responses", prompt("responses", { input: [item] }), { key: other });
    const { error } = await refused.json();
    assertEquals([refused.status, error.param], [400, "input[0]"]);
    assertStringIncludes(error.message, "another API key");
    const many = await ask(gateway, { input: Array.from({ length: 65 }, () => item) });
    assertEquals(many.status, 400);
    assertStringIncludes((await many.json()).error.message, "more than 64 compaction items");
  });

  Deno.test(`the endpoint keeps user messages and compacts the rest: ${protocol}`, async () => {
    await using server = startUpstream(() => json(WHOLE[protocol]));
    await using gateway = startGateway(configOf(protocol, server.url));
    const answer = await whole(await post(gateway, "compact", { input: CONVERSATION, instructions: "Be kind" }));
    assertEquals([answer.object, answer.usage.output_tokens], ["response.compaction", 2]);
    const texts = answer.output.map(({ type, content }: Value) => content?.[0].text ?? type);
    assertEquals(texts, ["Hello", "Fix the bug", "compaction"]);
    // The output is the next input, and may be compacted again.
    const again = await whole(
      await post(gateway, "compact", { input: [...answer.output, ...CONVERSATION.slice(0, 1)] }),
    );
    const types = again.output.map(({ type, content }: Value) => content?.[0].text ?? type);
    assertEquals(types, ["Hello", "Fix the bug", "Hello", "compaction"]);
    assertStringIncludes(server.requests[1]?.body ?? "", "Hello there");
  });
}

Deno.test("a vendor with compaction gets the trigger, and its item passes unchanged", async () => {
  const item = { type: "compaction", id: "cmp_1", encrypted_content: "vendor" };
  await using server = startUpstream(() => json({ ...WHOLE.responses, output: [item] }));
  await using gateway = startGateway(oneModel("responses", server.url));
  assertEquals((await whole(await ask(gateway, { input: [...CONVERSATION, TRIGGER] }))).output, [item]);
  assertEquals((await whole(await post(gateway, "compact", { input: CONVERSATION }))).output.at(-1), item);
  assertEquals(server.requests.map(({ json }) => json.input.at(-1)), [TRIGGER, TRIGGER]);
  await whole(await ask(gateway, { input: [item, { role: "user", content: "Go on" }] }));
  assertEquals(server.requests[2]?.json.input[0], item);
});

Deno.test("a gateway behind another one decrypts its own compaction items", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  await using far = startGateway(oneModel("chat", server.url));
  await using between = startUpstream(({ body }) =>
    fetch(`${far.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${far.key.key}`, "content-type": "application/json" },
      body: body.replace("real-one", "acme/one"),
    })
  );
  await using near = startGateway(oneModel("responses", between.url));
  const { output: [item] } = await whole(await ask(near, { input: [...CONVERSATION, TRIGGER] }));
  await whole(await ask(near, { input: [item, { role: "user", content: "Go on" }] }));
  assertStringIncludes(server.requests[1]?.body ?? "", "Hello there");
});

Deno.test("a missing summary is an error, not an empty compaction", async () => {
  const silent = structuredClone(WHOLE.chat) as Value;
  silent.choices[0].message.content = " ";
  const frames = STREAMED.chat.filter((frame) => !frame.includes("Hello") && !frame.includes("th\\u00e9re"));
  await using server = startUpstream(({ stream }) => stream ? events(frames.join("")) : json(silent));
  await using gateway = startGateway(oneModel("chat", server.url));
  const input = [...CONVERSATION, TRIGGER];
  const response = await ask(gateway, { input });
  assertEquals(response.status, 502);
  assertStringIncludes((await response.json()).error.message, "no summary");
  const types = (await streamed(await ask(gateway, { input, stream: true }))).map(({ type }) => type);
  assertEquals(types.slice(-2), ["error", "response.failed"]);
});

Deno.test("a WebSocket supports compaction", async () => {
  await using server = startUpstream(() => events(STREAMED.chat.join("")));
  await using gateway = startGateway(oneModel("chat", server.url));
  using socket = await openSocket(gateway);
  const first = await socket.ask({ store: false, input: CONVERSATION });
  const compacted = await socket.ask({ store: false, previous_response_id: first.id, input: [TRIGGER] });
  assertEquals(compacted.output.map(({ type }: Value) => type), ["compaction"]);
  await socket.ask({ store: false, previous_response_id: compacted.id, input: "Go on" });
  assertEquals(server.requests[2]?.json.messages.length, 2);
});

Deno.test("the token count of a responses request equals that of the same prompt in messages", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway(oneModel("chat", server.url));
  const counted = await whole(await post(gateway, "input_tokens", { input: CONVERSATION, instructions: "Be kind" }));
  const native = await fetch(`${gateway.url}/anthropic/v1/messages/count_tokens`, {
    method: "POST",
    headers: { "x-api-key": gateway.key.key, "anthropic-version": "2023-06-01" },
    body: JSON.stringify({
      model: "acme/one",
      system: "Be kind",
      messages: CONVERSATION.map(({ role, content }) => ({
        role,
        content: typeof content === "string" ? content : "Fix the bug",
      })),
    }),
  });
  assertEquals(counted, { object: "response.input_tokens", ...await whole(native) });
  // References count as the items they refer to.
  const { id } = await whole(await ask(gateway, { input: "x ".repeat(1_000) }));
  const more = await whole(await post(gateway, "input_tokens", { input: "Go", previous_response_id: id }));
  assert(more.input_tokens > 1_000, String(more.input_tokens));
  assertEquals(server.requests.length, 1);
  const unknown = await post(gateway, "input_tokens", { model: "acme/none", input: "a" });
  assertEquals(unknown.status, 404, await unknown.text());
});
