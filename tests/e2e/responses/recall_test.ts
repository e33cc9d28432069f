/** References to earlier responses and their items, over every protocol of upstreams. */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { isObject, type JsonObject } from "../../../lib/json/mod.ts";
import { model, oneModel, startGateway, type TestGateway } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, type FakeUpstream, json, startUpstream } from "../../upstream/mod.ts";

// deno-lint-ignore no-explicit-any
type Answer = Record<string, any>;

const GONE = '"store": false';

/** The whole answer, however it came. */
async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  assertEquals(response.status, 200, text);
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return JSON.parse(text);
  const last = text.split("\n\n").findLast((event) => event.includes("response.completed")) ?? "";
  return JSON.parse(last.slice(last.indexOf("data: ") + 6)).response;
}

async function errorOf(response: Response): Promise<Answer> {
  const body = await response.json();
  assertEquals(response.status, 400, JSON.stringify(body));
  return body.error;
}

function ask(gateway: TestGateway, more: JsonObject, key?: TestGateway["key"]): Promise<Response> {
  return gateway.ask("responses", prompt("responses", more), key && { key });
}

/** The conversation that an upstream got. */
function conversation({ requests }: FakeUpstream, index: number): string {
  const body = requests.at(index)?.json ?? {};
  assert(!("previous_response_id" in body));
  return JSON.stringify(body.messages ?? body.input ?? body.contents);
}

for (const protocol of PROTOCOLS) {
  for (const stream of [false, true]) {
    Deno.test(`responses and items are found again: ${protocol}, ${stream ? "streamed" : "whole"}`, async () => {
      await using server = startUpstream(({ stream }) =>
        stream ? events(STREAMED[protocol].join("")) : json(WHOLE[protocol])
      );
      await using gateway = startGateway(oneModel(protocol, server.url));
      const first = await answerOf(await ask(gateway, { stream }));
      const again = { role: "user", content: "Again" };
      const second = await answerOf(await ask(gateway, { stream, previous_response_id: first.id, input: "Again" }));
      const input: JsonObject[] = [{ role: "user", content: "Hello" }, {
        type: "item_reference",
        id: first.output[0].id,
      }, again];
      await answerOf(await ask(gateway, { stream, input }));
      await answerOf(await ask(gateway, { stream, input: input.with(1, { id: first.output[0].id }) }));
      await answerOf(await ask(gateway, { stream, input: input.toSpliced(1, 1, ...first.output) }));
      const sent = [1, 2, 3, 4].map((index) => conversation(server, index));
      assertEquals(new Set(sent).size, 1, sent.join("\n"));
      assertStringIncludes(sent[0] ?? "", "Hello th");
      assertEquals([first.previous_response_id ?? null, second.previous_response_id], [null, first.id]);
      if (protocol !== "responses") assertEquals([first.store, second.store], [true, true]);
    });
  }
}

Deno.test("a chain of responses has every input and output in order", async () => {
  await using server = startUpstream(({ json: { messages } }) => {
    const [message] = structuredClone(WHOLE.chat.choices) as { message: JsonObject }[];
    assert(message !== undefined);
    message.message.content = `answer ${messages.length}`;
    return json({ ...WHOLE.chat, choices: [message] });
  });
  await using gateway = startGateway(oneModel("chat", server.url));
  const one = await answerOf(await ask(gateway, { input: "one" }));
  const two = await answerOf(await ask(gateway, { input: "two", previous_response_id: one.id }));
  // A stored input may itself have references.
  const input = [{ id: one.output[0].id }, { role: "user", content: "three" }];
  const three = await answerOf(await ask(gateway, { input, previous_response_id: two.id }));
  await answerOf(await ask(gateway, { input: "four", previous_response_id: three.id }));
  // The chain forks.
  await answerOf(await ask(gateway, { input: "other", previous_response_id: one.id }));
  const texts = (index: number) =>
    (server.requests[index]?.json.messages as JsonObject[]).map(({ content }) => content);
  assertEquals(texts(3).join("|"), "one|answer 1|two|answer 3answer 1|three|answer 5|four");
  assertEquals(texts(4), ["one", "answer 1", "other"]);
});

for (const stream of [false, true]) {
  Deno.test(`a vendor's id that an earlier response has is replaced: ${stream ? "streamed" : "whole"}`, async () => {
    await using server = startUpstream(({ stream }) =>
      stream ? events(STREAMED.responses.join("")) : json(WHOLE.responses)
    );
    await using gateway = startGateway(oneModel("responses", server.url));
    const one = await answerOf(await ask(gateway, { stream, input: "one" }));
    const response = await ask(gateway, { stream, input: "two" });
    const text = await response.clone().text();
    const two = await answerOf(response);
    assert(one.id !== two.id && !text.includes(`"${one.id}"`), text);
    const other = await answerOf(await gateway.ask("responses", prompt("responses"), { key: await gateway.addKey() }));
    assertEquals(other.id, one.id);
    for (const [previous, word] of [[one, "one"], [two, "two"]] as const) {
      await answerOf(await ask(gateway, { stream, input: "three", previous_response_id: previous.id }));
      assertStringIncludes(conversation(server, -1), word);
    }
  });
}

Deno.test("a response of another key, not stored or expired is a 400 that names the setting", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  let now = 0;
  await using gateway = startGateway(oneModel("chat", server.url), { monotonic: () => now });
  const other = await gateway.addKey();
  const kept = await answerOf(await ask(gateway, {}));
  const unkept = await answerOf(await ask(gateway, { store: false }));
  assertEquals([kept.store, unkept.store], [true, false]);
  const reference = (item: { id: string }) => ({ input: [{ type: "item_reference", id: item.id }] });
  const refused = async (more: JsonObject, key = gateway.key) => {
    const error = await errorOf(await ask(gateway, more, key));
    assertStringIncludes(error.message, GONE);
    return [error.param, error.code];
  };
  const noResponse = ["previous_response_id", "previous_response_not_found"];
  assertEquals(await refused({ previous_response_id: kept.id }, other), noResponse);
  const { message } = await errorOf(await ask(gateway, { previous_response_id: "r".repeat(10_000) }));
  assert(message.length < 500, message);
  assertEquals(await refused(reference(kept.output[0]), other), ["input[0]", "item_not_found"]);
  assertEquals(await refused({ previous_response_id: unkept.id }), noResponse);
  now += 59 * 60_000;
  await answerOf(await ask(gateway, reference(kept.output[0])));
  now += 59 * 60_000;
  await answerOf(await ask(gateway, { previous_response_id: kept.id }));
  now += 61 * 60_000;
  assertEquals(await refused({ previous_response_id: kept.id }), noResponse);
  assertEquals(server.requests.length, 4);
});

Deno.test("without storage, answers say that they are not stored", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway({ ...oneModel("chat", server.url), responses: { recall: null } });
  const answer = await answerOf(await ask(gateway, { store: true }));
  assertEquals([answer.store, gateway.gateway.recall.bytes], [false, 0]);
  const { message } = await errorOf(await ask(gateway, { previous_response_id: answer.id }));
  assertStringIncludes(message, "this gateway does not store responses");
});

Deno.test("a reference restores signed reasoning that its client did not ask for", async () => {
  const thinking = { type: "thinking", thinking: "Plan.", signature: "signed-by-vendor" };
  const call = { type: "tool_use", id: "toolu_1", name: "clock", input: {} };
  await using server = startUpstream(() =>
    json({ ...WHOLE.messages, content: [thinking, call], stop_reason: "tool_use" })
  );
  await using gateway = startGateway(oneModel("messages", server.url));
  const more = {
    reasoning: { effort: "low", summary: "auto" },
    tools: [{ type: "function", name: "clock", parameters: { type: "object", properties: {} } }],
  };
  const { output } = await answerOf(await ask(gateway, more));
  assertEquals(output.map(({ type }: Answer) => type), ["reasoning", "function_call"]);
  assert(!("encrypted_content" in output[0]));
  await answerOf(
    await ask(gateway, {
      ...more,
      input: [
        { role: "user", content: "Hello" },
        ...output.map(({ id }: Answer) => ({ type: "item_reference", id })),
        { type: "function_call_output", call_id: output[1].call_id, output: "noon" },
      ],
    }),
  );
  // A client that does not ask for reasoning at all gets no item of it.
  const { id, output: [only] } = await answerOf(await ask(gateway, { tools: more.tools }));
  assertEquals(only.type, "function_call");
  const result = { type: "function_call_output", call_id: only.call_id, output: "noon" };
  await answerOf(await ask(gateway, { tools: more.tools, previous_response_id: id, input: [result] }));
  const [asked, unasked] = [1, 3].map((index) => server.requests[index]?.json.messages[1].content);
  assertEquals(asked, [thinking, call]);
  assertEquals(unasked, [{ ...thinking, thinking: "" }, call]);
});

Deno.test("a relay requests encrypted reasoning only if it stores the answer of a reasoning model", async () => {
  await using server = startUpstream(() => json(WHOLE.responses));
  const file = oneModel("responses", server.url);
  const plain = model("acme/plain", [{ upstream: "one", model: "real-one" }], { reasoning: undefined });
  await using gateway = startGateway({ ...file, models: [...file.models as JsonObject[], plain] });
  for (const more of [{}, { include: ["x"] }, { store: false }, { model: "acme/plain" }]) {
    await answerOf(await ask(gateway, more));
  }
  const encrypted = "reasoning.encrypted_content";
  const requested = server.requests.map((request) => request.json.include);
  assertEquals(requested, [[encrypted], ["x", encrypted], undefined, undefined]);
});

Deno.test("encrypted reasoning that only the gateway requested is stored and not shown", async () => {
  const secret = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAA" };
  const compaction = { type: "compaction", id: "cmp_1", encrypted_content: "gBBB" };
  const response = { ...WHOLE.responses, output: [secret, compaction] };
  const frame = (type: string, more: JsonObject) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
  const frames = [
    frame("response.created", { sequence_number: 0, response: { ...response, status: "in_progress", output: [] } }),
    frame("response.output_item.added", { sequence_number: 1, output_index: 0, item: secret }),
    frame("response.output_item.done", { sequence_number: 2, output_index: 0, item: secret }),
    frame("response.completed", { sequence_number: 3, response }),
  ].join("");
  await using server = startUpstream(({ stream }) => stream ? events(frames) : json(response));
  await using gateway = startGateway(oneModel("responses", server.url));
  for (const stream of [false, true]) {
    for (const isShown of [false, true]) {
      const more: JsonObject = isShown ? { include: ["reasoning.encrypted_content"] } : {};
      const text = await (await ask(gateway, { stream, ...more })).text();
      assertEquals(text.includes("gAAA"), isShown, text);
      assertStringIncludes(text, "rs_1");
      assertStringIncludes(text, "gBBB");
    }
    // Agents send back what they were shown, and the upstream may have stored nothing.
    const { encrypted_content: _, ...shown } = secret;
    const other = { ...shown, id: "rs_2" };
    const sent = { ...shown, summary: [{ type: "summary_text", text: "Another answer's" }] };
    await answerOf(await ask(gateway, { stream, input: [shown, other, sent, { role: "user", content: "Go" }] }));
    assertEquals(server.requests.at(-1)?.json.input.slice(0, 3), [secret, other, sent]);
    // If nothing is stored, the rest would be refused.
    const input = [shown, other, sent, { role: "user", content: "Go" }];
    const response = await ask(gateway, { stream, store: false, input });
    assertEquals(response.headers.get("x-sluice-dropped"), "input.reasoning");
    await answerOf(response);
    assertEquals(server.requests.at(-1)?.json.input.map(({ id, role }: Answer) => id ?? role), ["rs_1", "user"]);
    await answerOf(await ask(gateway, { stream, input: [{ id: "rs_1" }, { role: "user", content: "Go" }] }));
    assertEquals(server.requests.at(-1)?.json.input[0], secret);
  }
});

Deno.test("a relayed stream is stored although its last event has no output", async () => {
  const streamed = STREAMED.responses.join("");
  const bare = streamed.replace(/("status":"completed","model":"real-one","output":)\[.*?\](,"usage")/, "$1[]$2");
  assert(bare !== streamed);
  await using server = startUpstream(({ stream }) => stream ? events(bare) : json(WHOLE.responses));
  await using gateway = startGateway(oneModel("responses", server.url));
  await (await ask(gateway, { stream: true })).text();
  await answerOf(await ask(gateway, { input: [{ id: "msg_1" }, { role: "user", content: "Again" }] }));
  assertStringIncludes(conversation(server, 1), "Hello thére 🙂");
});

Deno.test("a long conversation is stored once, however often it is sent", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway(oneModel("chat", server.url));
  const input: JsonObject[] = [{ role: "user", content: "word ".repeat(20_000) }];
  for (let turn = 0; turn < 20; turn++) {
    const { output } = await answerOf(await ask(gateway, { input }));
    input.push({ type: "item_reference", id: output[0].id }, { role: "user", content: "Again" });
  }
  const { bytes } = gateway.gateway.recall;
  assert(bytes > 100_000 && bytes < 150_000, String(bytes));
  const last = server.requests.at(-1)?.json.messages;
  assertEquals(last.map(({ role }: Answer) => role[0]).join(""), "u" + "au".repeat(19));
});

Deno.test("a recalled conversation counts towards the body limit", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway({ ...oneModel("chat", server.url), resource_limits: { json_body_bytes: 4096 } });
  let response = await ask(gateway, { input: "x".repeat(3_000) });
  const { id } = await response.json();
  response = await ask(gateway, { input: "y".repeat(3_000), previous_response_id: id });
  assertEquals(response.status, 413, await response.text());
  const { usage } = WHOLE.chat;
  assert(isObject(usage));
});

Deno.test("many references to one long item are refused before they are resolved", async () => {
  const [choice] = structuredClone(WHOLE.chat.choices) as { message: JsonObject }[];
  assert(choice !== undefined);
  choice.message.content = "x".repeat(1_000_000);
  await using server = startUpstream(() => json({ ...WHOLE.chat, choices: [choice] }));
  await using gateway = startGateway(oneModel("chat", server.url));
  const { output } = await answerOf(await ask(gateway, {}));
  const input = Array.from({ length: 600 }, () => ({ id: output[0].id }));
  const response = await ask(gateway, { input });
  assertEquals(response.status, 413, await response.text());
  assertEquals(server.requests.length, 1);
});
