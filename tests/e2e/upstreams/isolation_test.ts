import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { writeSignature } from "../../../lib/protocols/canonical/signature.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { model, oneModel, startGateway, upstream } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, WHOLE } from "../../upstream/replies.ts";
import { json, startUpstream } from "../../upstream/mod.ts";

/** Names under which other gateways let a client choose the address. */
const BODY_NAMES = `
  api_base base_url baseURL api_url apiBase endpoint url host proxy proxy_url custom_host customHost
  custom_llm_provider azure_endpoint azure_ad_token aws_bedrock_runtime_endpoint vertex_location organization
  api_key api_version deployment_id engine region_name target target_url upstream upstream_url webhook
  callback_url redirect_uri`.trim().split(/\s+/);
const NESTED_NAMES: ((url: string) => JsonObject)[] = [
  (url) => ({ provider: { base_url: url } }),
  (url) => ({ provider: { order: [url], api_base: url } }),
  (url) => ({ extra_body: { api_base: url } }),
  (url) => ({ extra_headers: { host: url, "x-custom-host": url } }),
  (url) => ({ extra_query: { base_url: url } }),
  (url) => ({ litellm_params: { api_base: url } }),
  (url) => ({ metadata: { api_base: url } }),
  (url) => ({ config: { targets: [{ custom_host: url }] } }),
  (url) => ({ fallbacks: [{ model: "acme/one", api_base: url }] }),
  (url) => ({ models: [url] }),
];
const HEADER_NAMES = `
  x-portkey-custom-host x-portkey-config x-custom-host x-openai-custom-host x-anthropic-custom-host x-base-url
  x-api-base x-upstream x-upstream-url x-target-url x-proxy-url x-forwarded-host x-forwarded-server x-original-url
  x-rewrite-url x-host forwarded helicone-target-url helicone-openai-api-base x-envoy-original-path`.trim().split(
  /\s+/,
);

Deno.test("no member and no header of a request changes where the gateway connects", async () => {
  await using trap = startUpstream(() => json({ caught: true }));
  const bodies = [...BODY_NAMES.map((name) => (url: string): JsonObject => ({ [name]: url })), ...NESTED_NAMES];
  assertEquals(bodies.length + HEADER_NAMES.length, 60);
  for (const protocol of PROTOCOLS) {
    await using server = startUpstream(() => json(WHOLE.chat));
    await using gateway = startGateway(oneModel("chat", server.url));
    let sent = 0;
    for (const more of bodies) {
      const response = await gateway.ask(protocol, prompt(protocol, more(trap.url)));
      await response.body?.cancel();
      // A name that the protocol itself defines may be rejected.
      assert(response.status === 200 || response.status === 400, `${JSON.stringify(more("x"))}: ${response.status}`);
      sent += response.status === 200 ? 1 : 0;
    }
    for (const name of HEADER_NAMES) {
      const response = await gateway.ask(protocol, prompt(protocol), { headers: { [name]: trap.url } });
      assertEquals(response.status, 200, `${name}: ${await response.text()}`);
      sent++;
    }
    assertEquals(server.requests.length, sent);
    assert(sent > 50, `${sent}`);
    for (const { path, headers } of server.requests) {
      assertEquals([path, headers.get("host")], ["/v1/chat/completions", server.url.slice("http://".length)]);
    }
  }
  assertEquals(trap.requests.length, 0);
});

Deno.test("the model's name does not change the path", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway(oneModel("chat", server.url));
  for (
    const id of ["../../etc", "acme/one?x=", "acme/one#", "http://127.0.0.1:1/", "acme/one/../two", "acme/one\r\n"]
  ) {
    const response = await gateway.ask("chat", prompt("chat", { model: id }));
    await response.body?.cancel();
    assert(response.status === 404 || response.status === 400 || response.status === 403, `${id}: ${response.status}`);
  }
  assertEquals(server.requests.length, 0);
});

Deno.test("URLs of images and files are passed on and never fetched", async () => {
  await using trap = startUpstream(() => json({ caught: true }));
  const image = `${trap.url}/a.png`;
  const asks: Readonly<Record<Protocol, JsonObject>> = {
    chat: { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: image } }] }] },
    responses: {
      input: [{
        role: "user",
        content: [{ type: "input_image", image_url: image }, { type: "input_file", file_url: `${trap.url}/a.pdf` }],
      }],
    },
    messages: {
      messages: [{ role: "user", content: [{ type: "image", source: { type: "url", url: image } }] }],
    },
    gemini: { contents: [{ role: "user", parts: [{ fileData: { mimeType: "image/png", fileUri: image } }] }] },
  };
  for (const client of PROTOCOLS) {
    for (const to of PROTOCOLS) {
      await using server = startUpstream(() => json(WHOLE[to]));
      await using gateway = startGateway(oneModel(to, server.url));
      const response = await gateway.ask(client, prompt(client, asks[client]));
      const text = await response.text();
      // Chat upstreams take no files by address: that is refused, not fetched.
      if (client === "responses" && to === "chat" && response.status === 400) continue;
      assertEquals(response.status, 200, text);
      assert(server.requests[0]?.body.includes(image), server.requests[0]?.body);
    }
  }
  assertEquals(trap.requests.length, 0);
});

/** A conversation in which the assistant has thought. */
function thought(protocol: Exclude<Protocol, "gemini">, signature: string): JsonObject {
  switch (protocol) {
    case "messages":
      return {
        messages: [
          { role: "user", content: "a" },
          {
            role: "assistant",
            content: [{ type: "thinking", thinking: "THOUGHT", signature }, { type: "text", text: "b" }],
          },
          { role: "user", content: "c" },
        ],
      };
    case "responses":
      return {
        input: [
          { role: "user", content: "a" },
          {
            type: "reasoning",
            id: "rs_1",
            summary: [{ type: "summary_text", text: "THOUGHT" }],
            encrypted_content: signature,
          },
          { type: "message", role: "assistant", content: [{ type: "output_text", text: "b" }] },
          { role: "user", content: "c" },
        ],
      };
    case "chat":
      return {
        messages: [
          { role: "user", content: "a" },
          {
            role: "assistant",
            content: "b",
            reasoning_details: [{ type: "reasoning.text", text: "THOUGHT", signature, format: "anthropic-claude-v1" }],
          },
          { role: "user", content: "c" },
        ],
      };
  }
}

Deno.test("reasoning signed by another vendor is removed, even within one protocol", async () => {
  const natives = { responses: "openai", messages: "anthropic" } as const;
  for (const protocol of ["messages", "responses"] as const) {
    await using server = startUpstream(() => json(WHOLE[protocol]));
    const own = natives[protocol];
    const other = own === "openai" ? "anthropic" : "openai";
    const vendors = { openai: upstream("openai", server.url), anthropic: upstream("anthropic", server.url) };
    await using gateway = startGateway({
      upstreams: vendors,
      models: [
        model("acme/one", [{ upstream: own, model: "real-one", ...(own === "openai" && { protocol: "responses" }) }]),
        model("acme/two", [{ upstream: other, model: "real-two" }]),
      ],
    });
    const cases: [signature: string, kept: string | undefined][] = [
      ["native-value", "native-value"],
      [writeSignature({ issuer: other, value: "foreign-value" }, own), undefined],
    ];
    for (const [signature, kept] of cases) {
      const response = await gateway.ask(protocol, prompt(protocol, thought(protocol, signature)));
      assertEquals(response.status, 200, await response.text());
      const body = server.requests.at(-1)?.body ?? "";
      assertEquals(body.includes("THOUGHT"), kept !== undefined, body);
      assertEquals(body.includes("foreign-value") || body.includes("sluice1."), false, body);
      if (kept !== undefined) assert(body.includes(kept), body);
      else assertMatch(response.headers.get("x-sluice-dropped") ?? "", /thinking|reasoning/);
    }
  }
});

Deno.test("reasoning signed by another vendor is removed in chat, except for a host that sells that vendor's models", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  const upstreams = {
    plain: upstream("openai", server.url, { protocols: ["chat"] }),
    router: upstream("openrouter", server.url),
    anthropic: upstream("anthropic", server.url),
  };
  await using gateway = startGateway({
    upstreams,
    models: [
      model("acme/one", [{ upstream: "plain", model: "real-one" }]),
      model("acme/two", [{ upstream: "anthropic", model: "real-two" }]),
      model("acme/three", [{ upstream: "router", model: "anthropic/real-three" }]),
    ],
  });
  for (const [id, kept] of [["acme/one", false], ["acme/three", true]] as const) {
    const response = await gateway.ask("chat", prompt("chat", { ...thought("chat", "native-value"), model: id }));
    assertEquals(response.status, 200, await response.text());
    const body = server.requests.at(-1)?.body ?? "";
    assertEquals([body.includes("THOUGHT"), body.includes("native-value")], [kept, kept], body);
    assertEquals(/reasoning/.test(response.headers.get("x-sluice-dropped") ?? ""), !kept);
  }
});
