import { assertEquals } from "@std/assert";
import { writeSignature } from "../../../lib/protocols/canonical/signature.ts";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { model, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { errorBody, paramIn, prompt, PROTOCOLS, WHOLE } from "../../upstream/replies.ts";
import { type FakeUpstream, json, type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";

/** An upstream that answers in the protocol it is asked in. */
function server(fails: () => boolean = () => false): FakeUpstream {
  return startUpstream(({ path }): ScriptedAnswer => {
    if (fails()) return json(errorBody("chat", "broken"), { status: 500 });
    return json(
      path.endsWith("/messages") ? WHOLE.messages : path.endsWith("/responses") ? WHOLE.responses : WHOLE.chat,
    );
  });
}

const CHEAP = { prompt: "0.000001", completion: "0.000002" };
const DEAR = { prompt: "0.00001", completion: "0.00002" };

/** `acme/one` at `main` (openai), `spare` (openai-compatible) and `other` (anthropic), in that order; `acme/two` at `spare`. */
function start({ url }: FakeUpstream, config: JsonObject = {}): TestGateway {
  return startGateway({
    upstreams: {
      main: upstream("openai", url),
      spare: upstream("openai-compatible", url),
      other: upstream("anthropic", url),
    },
    models: [
      model("acme/one", [
        { upstream: "main", model: "m", priority: 0 },
        { upstream: "spare", model: "m", priority: 1 },
        { upstream: "other", model: "m", priority: 2 },
      ], { pricing: DEAR }),
      model("acme/two", [{ upstream: "spare", model: "n" }], { pricing: CHEAP }),
    ],
    ...config,
  });
}

/** The target that answered, or the status. */
async function who(gateway: TestGateway, protocol: Protocol, more: JsonObject): Promise<string> {
  const response = await gateway.ask(protocol, prompt(protocol, more));
  const text = await response.text();
  if (response.status === 200) return response.headers.get("x-sluice-upstream") ?? "";
  const param = paramIn(protocol, JSON.parse(text));
  return [response.status, ...(param ? [param] : [])].join(" ");
}

Deno.test("the provider object chooses upstreams, in every protocol", async () => {
  const cases: [JsonObject | null, who: string, messages?: string][] = [
    [null, "main"],
    [{}, "main"],
    [{ order: ["other"] }, "other"],
    [{ order: ["anthropic", "main"] }, "other"],
    [{ order: ["openai-compatible"] }, "spare"],
    [{ only: ["spare", "other"] }, "spare"],
    [{ only: ["spare", "other"], order: ["other"] }, "other"],
    [{ ignore: ["openai", "spare"] }, "other"],
    [{ ignore: ["nobody"] }, "main"],
    [{ sort: "throughput" }, "spare"],
    [{ sort: { by: "latency" } }, "other"],
    [{ preferred_max_latency: 0.2 }, "other"],
    [{ preferred_min_throughput: { p50: 50 } }, "spare"],
    [{ max_price: { prompt: "10", completion: 20 } }, "main"],
    [{ max_price: { prompt: 9.999999 } }, "503", "529"],
    [{ only: ["main"], ignore: ["openai"] }, "503", "529"],
    [{ only: ["embedded"] }, "503", "529"],
    [{ only: ["nobody"] }, "400 provider.only[0]", "400"],
    [{ order: ["main", "nobody"] }, "400 provider.order[1]", "400"],
    [{ order: "main" }, "400 provider.order", "400"],
    [{ allow_fallbacks: 1 }, "400 provider.allow_fallbacks", "400"],
    [{ max_price: { prompt: "much" } }, "400 provider.max_price.prompt", "400"],
    [{ sort: "beauty" }, "400 provider.sort", "400"],
    [{ data_collection: "deny", zdr: true, quantizations: ["fp8"], max_price: { image: "1" } }, "main"],
  ];
  await using hosts = server();
  await using gateway = start(hosts);
  const { health } = gateway.gateway;
  const real = {
    main: { firstMs: () => 900, tokensPerSecond: () => 10 },
    spare: { firstMs: () => 400, tokensPerSecond: () => 90 },
    other: { firstMs: () => 100, tokensPerSecond: () => 30 },
  };
  Object.assign(health, { speed: ({ upstream }: { upstream: keyof typeof real }) => real[upstream] });
  for (const protocol of PROTOCOLS) {
    for (const [provider, expected, inMessages = expected] of cases) {
      const wanted = protocol === "messages" ? inMessages : expected;
      assertEquals(await who(gateway, protocol, { provider }), wanted, `${protocol} ${JSON.stringify(provider)}`);
    }
  }
});

Deno.test("a refusal because of preferences says so, and is final", async () => {
  await using hosts = server();
  await using gateway = start(hosts);
  const response = await gateway.ask("chat", prompt("chat", { provider: { max_price: { prompt: 1 } } }));
  assertEquals(response.headers.get("x-should-retry"), "false");
  const { error } = await response.json();
  assertEquals(error.message, "Cannot satisfy the request's routing preferences: provider.max_price leaves no model");
  assertEquals(hosts.requests.length, 0);
});

Deno.test("max_price compares what the key would pay: the catalog's price times its group's factor", async () => {
  await using hosts = server();
  await using gateway = start(hosts, { groups: { default: { price_factor: "0.5" } } });
  for (const [price, expected] of [["5", "main"], ["4.999999", "503"]] as const) {
    assertEquals(await who(gateway, "chat", { provider: { max_price: { prompt: price } } }), expected);
  }
});

Deno.test("require_parameters moves on to an upstream that supports them all, or refuses", async () => {
  await using hosts = server();
  await using gateway = start(hosts);
  const provider = { require_parameters: true, ignore: ["spare"] };
  // Only the messages protocol takes top_k.
  assertEquals(await who(gateway, "messages", { top_k: 5, provider }), "other");
  assertEquals(hosts.requests.length, 1);
  // Only the chat protocol takes logit_bias.
  const biased = { logit_bias: { 5: 1 } };
  assertEquals(await who(gateway, "chat", { ...biased, provider: { ...provider, order: ["other"] } }), "main");
  assertEquals(await who(gateway, "chat", { ...biased, provider: { ...provider, only: ["other"] } }), "400 logit_bias");
  assertEquals(hosts.requests.length, 2);
});

Deno.test("a conversation continues at the issuer of its signatures", async () => {
  await using hosts = server();
  await using gateway = startGateway({
    upstreams: { main: upstream("openai", hosts.url), other: upstream("anthropic", hosts.url) },
    models: [model("acme/one", [
      { upstream: "main", model: "m", weight: 100 },
      { upstream: "other", model: "m", weight: 1 },
    ])],
  });
  const messages = (issuer: string): JsonObject[] => [
    { role: "user", content: "Hello" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Hm", signature: writeSignature({ issuer, value: "c2ln" }, "anthropic") },
        { type: "text", text: "Hello" },
      ],
    },
    { role: "user", content: "Again" },
  ];
  const cases: [issuer: string, upstream: string][] = [["anthropic", "other"], ["openai", "main"], ["google", "main"]];
  for (const [issuer, expected] of cases) {
    assertEquals(await who(gateway, "messages", { messages: messages(issuer) }), expected, issuer);
  }
});
