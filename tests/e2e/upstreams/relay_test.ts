import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { oneModel, startGateway, upstream } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";

Deno.test("a byte order mark within a text reaches the client, even if the upstream's bytes are split before it", async () => {
  await Promise.all(PROTOCOLS.map(async (spoken) => {
    const text = STREAMED[spoken].join("").replaceAll(" th\\u00e9re", "\ufeffthere");
    const bytes = new TextEncoder().encode(`: ${" ".repeat(text.length)}\n\n${text}`);
    const cut = new TextEncoder().encode(new TextDecoder().decode(bytes).split("\ufeff")[0]).length;
    let arrived = Promise.withResolvers<void>();
    await using server = startUpstream(() => ({
      headers: { "content-type": "text/event-stream" },
      body: bytes,
      chunkBytes: cut,
      beforeLast: arrived.promise,
    }));
    for (const transport of ["http1", "fetch"]) {
      // A keep-alive arrives first if the first part has no whole event.
      await using gateway = startGateway({ ...oneModel(spoken, server.url, { transport }), keep_alive_seconds: 1 });
      for (const protocol of PROTOCOLS) {
        arrived = Promise.withResolvers();
        const response = await gateway.ask(protocol, prompt(protocol, { stream: true }));
        const got: number[] = [];
        for await (const piece of response.body ?? []) {
          got.push(...piece);
          arrived.resolve();
        }
        const text = new TextDecoder().decode(Uint8Array.from(got));
        assertMatch(text, /"\ufeffthere 🙂"/, `${protocol} from ${spoken} over ${transport}`);
      }
    }
  }));
});

Deno.test("relayed chat: invalid JSON is an error, even between white space that JSON does not know", async () => {
  const [first = "", ...others] = STREAMED.chat;
  await using server = startUpstream(() => events([first, ...others].join("").replace("}\n\n", "}\ufeff\n\n")));
  await using gateway = startGateway(oneModel("chat", server.url));
  const response = await gateway.ask("chat", prompt("chat", { stream: true }));
  assertEquals([response.status, (await response.json()).error.code], [502, "upstream_error"]);
});

Deno.test("relayed bodies lose parameters that the model lacks, and these are named", async () => {
  const cases: [Protocol, JsonObject, dropped: string, gone: string[], kept: JsonObject][] = [
    ["chat", { reasoning_effort: "high" }, "reasoning_effort", ["reasoning_effort"], {}],
    ["chat", { reasoning: { effort: "high" } }, "reasoning.effort", ["reasoning"], {}],
    ["responses", { reasoning: { effort: "high" } }, "reasoning", ["reasoning"], {}],
    [
      "messages",
      { thinking: { type: "adaptive" }, output_config: { effort: "high", x: 1 } },
      "thinking, output_config.effort",
      ["thinking"],
      { output_config: { x: 1 } },
    ],
  ];
  for (const [protocol, more, dropped, gone, kept] of cases) {
    await using server = startUpstream(() => json(WHOLE[protocol]));
    const file = oneModel(protocol, server.url);
    const [row] = file.models as JsonObject[];
    await using gateway = startGateway({ ...file, models: [{ ...row, reasoning: undefined }] });
    const response = await gateway.ask(protocol, prompt(protocol, more));
    assertEquals(response.status, 200, await response.text());
    const sent: JsonObject = JSON.parse(server.requests[0]?.body ?? "");
    assertEquals(response.headers.get("x-sluice-dropped"), dropped, JSON.stringify(sent));
    for (const name of gone) assert(!(name in sent), JSON.stringify(sent));
    for (const [name, value] of Object.entries(kept)) assertEquals(sent[name], value);

    const strict = await gateway.ask(protocol, prompt(protocol, { ...more, provider: { require_parameters: true } }));
    assertEquals([strict.status, server.requests.length], [400, 1], await strict.text());
  }
});

Deno.test("relayed bodies are adapted to their vendor", async () => {
  await using server = startUpstream(() => events(STREAMED.chat.join("")));
  const file = oneModel("chat", server.url);
  await using gateway = startGateway({
    ...file,
    upstreams: { one: upstream("mistral", server.url) },
  });
  const sent = '{"model":"acme/one","user":"u","seed":7,"x":1.0,"max_completion_tokens":5,' +
    '"messages":[{"role":"user","content":"a"}],"stream":true}';
  const response = await gateway.ask("chat", sent);
  await response.body?.cancel();
  assertEquals(response.headers.get("x-sluice-dropped"), "user");
  const body = server.requests[0]?.body ?? "";
  assertEquals(
    body,
    '{"model":"real-one","x":1.0,"messages":[{"role":"user","content":"a"}],"stream":true,"max_tokens":5,' +
      '"random_seed":7}',
  );
});

Deno.test("vendors get earlier reasoning of usual messages in their own form", async () => {
  const call = { id: "ABCDEFGH1", type: "function", function: { name: "read", arguments: "{}" } };
  const result = { role: "tool", tool_call_id: call.id, content: "line" };
  const thinking = { type: "thinking", thinking: [{ type: "text", text: "Hm" }], closed: true };
  const cases: [string, JsonObject, JsonObject][] = [
    ["kimi", { content: "" }, { content: "", reasoning_content: "" }],
    ["groq", { content: "b", reasoning_content: "Hm" }, { content: "b", reasoning: "Hm" }],
    ["mistral", { content: "b", reasoning_content: "Hm" }, { content: [thinking, { type: "text", text: "b" }] }],
  ];
  for (const [vendor, before, after] of cases) {
    await using server = startUpstream(() => json(WHOLE.chat));
    await using gateway = startGateway({
      ...oneModel("chat", server.url),
      upstreams: { one: upstream(vendor, server.url) },
    });
    const ask = (more: JsonObject) => [{ role: "assistant", tool_calls: [call], ...more }, result];
    const response = await gateway.ask("chat", prompt("chat", { messages: ask(before) }));
    assertEquals([response.status, response.headers.get("x-sluice-dropped")], [200, null], await response.text());
    assertEquals(server.requests[0]?.json.messages, ask(after));
  }
});

Deno.test("OpenRouter's members are translated for vendors without them, and its clients get their `reasoning`", async () => {
  const [first = "", ...others] = STREAMED.chat;
  const thought = first.replace(/"delta":\{[^}]*\}/, '"delta":{"role":"assistant","reasoning_content":"Hm."}');
  await using server = startUpstream(() => events([thought, first, ...others].join("")));
  const asked = { reasoning: { effort: "high" }, include_reasoning: true, usage: { include: true }, x: 1 };
  const cases = { openai: { reasoning_effort: "high" }, openrouter: asked, "openai-compatible": asked };
  for (const [vendor, expected] of Object.entries(cases)) {
    await using gateway = startGateway({
      ...oneModel("chat", server.url),
      upstreams: { one: upstream(vendor, server.url) },
    });
    const response = await gateway.ask("chat", prompt("chat", { ...asked, stream: true }));
    const chunks = (await response.text()).match(/(?<=data: )\{.*/g)?.map((text) => JSON.parse(text)) ?? [];
    assertEquals(response.headers.get("x-sluice-dropped"), null);
    assert(chunks.at(-1)?.usage.prompt_tokens > 0, vendor);
    const { reasoning, reasoning_effort, include_reasoning, usage, x }: JsonObject = server.requests.at(-1)?.json ?? {};
    const sent = { reasoning, reasoning_effort, include_reasoning, usage };
    assertEquals(JSON.parse(JSON.stringify({ ...sent, x })), { x: 1, ...expected });
    const thoughts = chunks.map(({ choices: [choice] }) => choice?.delta.reasoning).filter((text) =>
      text !== undefined
    );
    assertEquals(thoughts, vendor === "openai" ? ["Hm."] : []);
  }
});
