import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { model, oneModel, startGateway, type TestGateway, upstream } from "../support/gateway.ts";
import { errorBody, prompt, PROTOCOLS, STREAMED, SUCCESS, WHOLE } from "../upstream/replies.ts";
import { events, json, type ScriptedAnswer, startUpstream } from "../upstream/mod.ts";

const KEEP_ALIVES: Readonly<Record<Protocol, string>> = {
  chat: ": keep-alive\n",
  responses: ": keep-alive\n",
  messages: 'event: ping\ndata: {"type": "ping"}\n\n',
  gemini: "\n\n",
};

/** Asks for a stream and reads its first chunk. */
async function begin(
  gateway: TestGateway,
  protocol: Protocol,
): Promise<{ first: string; reader: ReadableStreamDefaultReader<Uint8Array>; response: Response }> {
  const response = await gateway.ask(protocol, prompt(protocol, { stream: true }));
  const reader = response.body?.getReader();
  if (reader === undefined) throw new Error("Expected a body");
  return { first: new TextDecoder().decode((await reader.read()).value), reader, response };
}

async function rest(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    text += decoder.decode(read.value, { stream: true });
  }
  return text;
}

Deno.test("a stream whose upstream is silent begins with keep-alives, and the answer follows", async () => {
  await Promise.all(PROTOCOLS.map(async (protocol) => {
    const ready = Promise.withResolvers<void>();
    await using server = startUpstream(() => events(STREAMED.chat.join(""), { before: ready.promise }));
    await using gateway = startGateway({ ...oneModel("chat", server.url), keep_alive_seconds: 1 });
    const { first, reader, response } = await begin(gateway, protocol);
    assertEquals(first, KEEP_ALIVES[protocol]);
    assertEquals([response.status, response.headers.get("content-type")], [200, "text/event-stream; charset=utf-8"]);
    ready.resolve();
    const text = await rest(reader);
    assert(text.includes("Hello") && text.includes(SUCCESS[protocol]), text);
  }));
});

Deno.test("a stream that began with keep-alives can still fail over to another target", async () => {
  const ready = Promise.withResolvers<void>();
  await using first = startUpstream(() => json(errorBody("chat", "busy"), { status: 503, before: ready.promise }));
  await using second = startUpstream(() => events(STREAMED.chat.join("")));
  await using gateway = startGateway({
    upstreams: {
      first: upstream("openai-compatible", first.url),
      second: upstream("openai-compatible", second.url),
    },
    models: [model("acme/one", [
      { upstream: "first", model: "m" },
      { upstream: "second", model: "m", priority: 1 },
    ])],
    keep_alive_seconds: 1,
  });
  const { reader } = await begin(gateway, "chat");
  ready.resolve();
  const text = await rest(reader);
  assert(text.includes("Hello") && text.includes("[DONE]") && !text.includes("error"), text);
});

Deno.test("a failure after keep-alives is written in the client's protocol, and logged", async () => {
  await Promise.all(PROTOCOLS.map(async (protocol) => {
    const ready = Promise.withResolvers<void>();
    await using server = startUpstream(() => json(errorBody("chat", "busy"), { status: 503, before: ready.promise }));
    await using gateway = startGateway({ ...oneModel("chat", server.url), keep_alive_seconds: 1 });
    const { reader } = await begin(gateway, protocol);
    ready.resolve();
    const text = await rest(reader);
    assertMatch(text, /overloaded/);
    assert(!text.includes("[DONE]") || protocol === "responses", text);
    assert(!text.includes("response.completed") && !text.includes("message_stop"), text);
    assertEquals(gateway.logs.map(({ event, kind }) => [event, kind]), [
      ["target_failed", "overloaded"],
      ["request_failed", "overloaded"],
    ]);
  }));
});

Deno.test("x-sluice-dropped is sent with a stream that begins with keep-alives", async () => {
  const ready = Promise.withResolvers<void>();
  await using server = startUpstream(() => events(STREAMED.messages.join(""), { before: ready.promise }));
  await using gateway = startGateway({ ...oneModel("messages", server.url), keep_alive_seconds: 1 });
  const response = await gateway.ask("chat", prompt("chat", { stream: true, seed: 5 }));
  assertEquals(response.headers.get("x-sluice-dropped"), "seed");
  ready.resolve();
  assert((await response.text()).includes("[DONE]"));
});

Deno.test("a prompt that the gateway shortened is sent shortened, even to a target with the client's protocol", async () => {
  await using server = startUpstream(() => json(WHOLE.responses));
  const file = oneModel("responses", server.url);
  await using gateway = startGateway({
    ...file,
    models: [
      model("acme/one", [{ upstream: "one", model: "real-one", protocol: "responses" }], { context_length: 300 }),
    ],
  });
  const input = Array.from({ length: 40 }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: `Turn ${index}: one two three four five six seven eight nine ten`,
  }));
  const response = await gateway.ask("responses", { model: "acme/one", input, truncation: "auto" });
  assertEquals(response.status, 200, await response.text());
  const body = server.requests[0]?.body ?? "";
  assert(body.includes("Turn 39") && !body.includes("Turn 0:"), body);
});

Deno.test("errors say that a model is unknown, of the wrong kind, or without an upstream", async () => {
  let script: ScriptedAnswer = json(WHOLE.chat);
  await using server = startUpstream(() => script);
  await using gateway = startGateway({
    upstreams: { one: upstream("openai-compatible", server.url) },
    models: [
      model("acme/one", [{ upstream: "one", model: "m" }]),
      model("acme/painter", [{ upstream: "one", model: "m" }], {
        architecture: { input_modalities: ["text"], output_modalities: ["image"] },
      }),
    ],
  });
  for (const [id, status] of [["acme/two", 404], ["acme/painter", 400], ["acme/one", 200]] as const) {
    const response = await gateway.ask("chat", prompt("chat", { model: id }));
    assertEquals(response.status, status, await response.text());
  }
  script = json(errorBody("chat", "no such model", "not_found"), { status: 404 });
  const response = await gateway.ask("chat", prompt("chat"));
  assertEquals(response.status, 404);
  assertMatch(await response.text(), /model_not_found/);
});
