import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { model, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { errorBody, paramIn, prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, json, type ScriptedAnswer, startUpstream, type UpstreamRequest } from "../../upstream/mod.ts";

const BROKEN = json(errorBody("chat", "broken"), { status: 500 });

/** The answer of each of two models, by its id at the upstream. */
type Answers = Partial<Record<"cheap" | "dear", ScriptedAnswer | ((request: UpstreamRequest) => ScriptedAnswer)>>;

/** An upstream of two models. */
function twoModels(answers: Answers): (request: UpstreamRequest) => ScriptedAnswer {
  return (request) => {
    const { model, stream } = JSON.parse(request.body);
    const script = answers[model as keyof Answers];
    const received = stream === true ? events(STREAMED.chat.join("")) : json(WHOLE.chat);
    return typeof script === "function" ? script(request) : script ?? received;
  };
}

const CHEAP = { prompt: "0.000001", completion: "0.000002" };
const DEAR = { prompt: "0.00001", completion: "0.00002" };

/** `acme/cheap` and `acme/dear` at one upstream. */
function start(url: string, { cheap = {}, dear = {}, config = {} }: Record<string, JsonObject> = {}): TestGateway {
  return startGateway({
    upstreams: { main: upstream("openai-compatible", url) },
    models: [
      model("acme/cheap", [{ upstream: "main", model: "cheap" }], { pricing: CHEAP, ...cheap }),
      model("acme/dear", [{ upstream: "main", model: "dear" }], { pricing: DEAR, ...dear }),
      model("acme/painter", [{ upstream: "main", model: "p" }], {
        architecture: { output_modalities: ["image"] },
        reasoning: undefined,
      }),
    ],
    ...config,
  });
}

function entriesOf({ store }: TestGateway): Promise<KeptEntry[]> {
  return store.ledger.entries({ after: 0, limit: 100 });
}

/** Members that name fallback models, in a protocol's format. */
function next(protocol: Protocol, ...ids: string[]): JsonObject {
  return protocol === "messages" ? { fallbacks: ids.map((model) => ({ model })) } : { models: ids };
}

function askFor(protocol: Protocol, ids: [string, ...string[]], more: JsonObject = {}): JsonObject {
  const [first, ...others] = ids;
  return prompt(protocol, { model: first, ...next(protocol, ...others), ...more });
}

Deno.test("the next model answers if the first one fails, under its own name and price", async () => {
  for (const protocol of PROTOCOLS) {
    for (const stream of [false, true]) {
      await using server = startUpstream(twoModels({ cheap: BROKEN }));
      await using gateway = start(server.url);
      const response = await gateway.ask(protocol, askFor(protocol, ["acme/cheap", "acme/dear"], { stream }));
      const text = await response.text();
      assertEquals(response.status, 200, text);
      assertMatch(text, /"model(?:Version)?":"acme\/dear"/);
      assert(!text.includes("acme/cheap"), text);
      const { headers } = response;
      assertEquals(
        ["model", "upstream", "attempts"].map((name) => headers.get(`x-sluice-${name}`)),
        ["acme/dear", "main", "2"],
      );
      assertEquals(server.requests.map(({ body }) => JSON.parse(body).model), ["cheap", "dear"]);
      for (const { body } of server.requests) assert(!/"models"|"fallbacks"|"provider"/.test(body), body);
      const [entry] = await entriesOf(gateway);
      // 7 tokens of input and 2 of output, at the second model's prices.
      assertEquals(
        [entry?.model, entry?.sheet?.prompt, entry?.cost, entry?.attempts],
        ["acme/dear", DEAR.prompt, 110_000_000n, 2],
      );
      if (!stream) assertEquals(headers.get("x-sluice-cost"), "0.00011");
    }
  }
});

Deno.test("a model that answers after a pause is billed at its own price, although another was looked at meanwhile", async () => {
  let asked = 0;
  await using server = startUpstream(twoModels({
    cheap: ({ body }) => {
      if (++asked === 1) return json(errorBody("chat", "busy"), { status: 429, headers: { "retry-after": "1" } });
      return JSON.parse(body).stream === true ? events(STREAMED.chat.join("")) : json(WHOLE.chat);
    },
  }));
  await using gateway = startGateway({
    upstreams: { main: upstream("openai-compatible", server.url) },
    models: [
      model("acme/cheap", [{ upstream: "main", model: "cheap" }], { pricing: CHEAP }),
      // Its upstream does not check the context, so the gateway refuses the prompt before an attempt.
      model("acme/small", [{ upstream: "embedded", model: "echo" }], { pricing: DEAR, context_length: 5 }),
    ],
  }, { breakers: true });
  const response = await gateway.ask("chat", askFor("chat", ["acme/cheap", "acme/small"]));
  assertEquals([response.status, response.headers.get("x-sluice-model")], [200, "acme/cheap"], await response.text());
  const [entry] = await entriesOf(gateway);
  assertEquals([entry?.model, entry?.sheet?.prompt, entry?.cost], ["acme/cheap", CHEAP.prompt, 11_000_000n]);
});

Deno.test("without a next model the upstream's own message about the request is the answer", async () => {
  const cases: [ScriptedAnswer, status: number, param: string | null][] = [
    [json(errorBody("chat", "no such model"), { status: 404 }), 404, null],
    [json(errorBody("chat", "too large"), { status: 413 }), 413, null],
    [json({ error: { message: "wrong", param: "top_p" } }, { status: 400 }), 400, "top_p"],
  ];
  for (const [cheap, status, param] of cases) {
    await using server = startUpstream(twoModels({ cheap }));
    await using gateway = start(server.url);
    const response = await gateway.ask("chat", askFor("chat", ["acme/cheap"]));
    assertEquals([response.status, (await response.json()).error.param], [status, param]);
    assertEquals(response.headers.get("x-sluice-attempts"), "1");
  }
});

Deno.test("a target that cannot serve the request is passed over without an attempt", async () => {
  await using server = startUpstream(twoModels({}));
  await using gateway = startGateway({
    upstreams: {
      one_answer: upstream("anthropic", server.url),
      main: upstream("openai-compatible", server.url),
    },
    models: [
      model("acme/one", [
        { upstream: "one_answer", model: "a", priority: 1 },
        { upstream: "main", model: "c", priority: 2 },
      ]),
      model("acme/alone", [{ upstream: "one_answer", model: "a" }]),
    ],
  });
  for (const [id, status, attempts] of [["acme/one", 200, 1], ["acme/alone", 400, 0]] as const) {
    const response = await gateway.ask("chat", prompt("chat", { model: id, n: 2 }));
    assertEquals([response.status, response.headers.get("x-sluice-attempts")], [status, `${attempts}`]);
    await response.body?.cancel();
    const entry = (await entriesOf(gateway)).at(-1);
    assertEquals([entry?.status, entry?.attempts, entry?.details?.attempts?.[0]?.outcome], [status, attempts, "unfit"]);
  }
});

Deno.test("models that the key may not use or that cannot serve the request are skipped", async () => {
  await using server = startUpstream(twoModels({}));
  await using gateway = start(server.url, { cheap: { supported_parameters: ["max_tokens"] } });
  const key = await gateway.addKey({ rules: { models: ["acme/dear"] } });
  const narrow = await gateway.addKey({ rules: { models: ["acme/cheap"] } });
  const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];
  const cases: [JsonObject, key: typeof key | undefined, status: number, answered: string | null][] = [
    [askFor("chat", ["acme/cheap", "acme/dear"]), key, 200, "acme/dear"],
    [askFor("chat", ["acme/dear", "acme/cheap"]), key, 200, "acme/dear"],
    [askFor("chat", ["acme/cheap"]), key, 403, null],
    [askFor("chat", ["acme/dear", "acme/painter"]), narrow, 403, null],
    [askFor("chat", ["acme/cheap", "acme/dear"], { tools }), undefined, 200, "acme/dear"],
    [askFor("chat", ["acme/cheap"], { tools }), undefined, 400, null],
    [askFor("chat", ["acme/dear", "acme/painter"]), undefined, 200, "acme/dear"],
  ];
  for (const [body, key, status, answered] of cases) {
    const response = await gateway.ask("chat", body, { ...(key && { key }) });
    assertEquals([response.status, response.headers.get("x-sluice-model")], [status, answered], await response.text());
  }
});

Deno.test("an unknown fallback model is an error", async () => {
  await using server = startUpstream(twoModels({}));
  await using gateway = start(server.url);
  for (const protocol of PROTOCOLS) {
    const response = await gateway.ask(protocol, askFor(protocol, ["acme/cheap", "acme/nothing"]));
    const text = await response.text();
    assertEquals(response.status, 400, text);
    assertMatch(text, /acme\/nothing/);
    if (protocol !== "messages") assertEquals(paramIn(protocol, JSON.parse(text)), "models");
  }
  const unknown = await gateway.ask("chat", askFor("chat", ["acme/nothing", "acme/dear"]));
  assertEquals(unknown.status, 404, await unknown.text());
  assertEquals(server.requests.length, 0);
});

Deno.test("each model has its own limits: if the first is full the next answers, and vice versa", async () => {
  const limits = { requests_per_minute: 1 };
  await using server = startUpstream(twoModels({}));
  await using gateway = start(server.url, { cheap: { limits }, dear: { limits: { requests_per_minute: 2 } } });
  const answered = async () => {
    const response = await gateway.ask("chat", askFor("chat", ["acme/cheap", "acme/dear"]));
    await response.body?.cancel();
    return [response.status, response.headers.get("x-sluice-model")];
  };
  assertEquals(await answered(), [200, "acme/cheap"]);
  assertEquals(await answered(), [200, "acme/dear"]);
  assertEquals(await answered(), [200, "acme/dear"]);
  assertEquals(await answered(), [429, null]);
  const entries = await entriesOf(gateway);
  assertEquals(entries.map(({ model, ending }) => `${model} ${ending}`).sort(), [
    "acme/cheap end",
    "acme/dear end",
    "acme/dear end",
    "acme/dear refused",
  ]);
});

Deno.test("if all models are full, the refusal of the first is the answer", async () => {
  await using server = startUpstream(twoModels({}));
  await using gateway = start(server.url, {
    cheap: { limits: { requests_per_minute: 1 } },
    dear: { limits: { tokens_per_minute: 1 } },
  });
  const statusOf = async () => {
    const response = await gateway.ask("chat", askFor("chat", ["acme/cheap", "acme/dear"]));
    return [response.status, (await response.json()).error?.type];
  };
  assertEquals([await statusOf(), await statusOf()], [[200, undefined], [429, "requests"]]);
});

Deno.test("while the ledger is down, models with a price are not called, and free ones are, without any budget", async () => {
  await using server = startUpstream(twoModels({}));
  const store = openMemoryStore();
  const file = {
    upstreams: { main: upstream("openai-compatible", server.url) },
    models: ["free", "dear"].map((name) =>
      model(`acme/${name}`, [{ upstream: "main", model: name }], name === "dear" ? { pricing: DEAR } : {})
    ),
  };
  await using gateway = startGateway(file, { store: { ...store, ledger: { ...store.ledger, isWritable: false } } });
  const statusOf = async (...ids: [string, ...string[]]) => {
    const response = await gateway.ask("chat", askFor("chat", ids));
    await response.body?.cancel();
    return [response.status, server.requests.length];
  };
  assertEquals(await statusOf("acme/free"), [200, 1]);
  assertEquals(await statusOf("acme/dear"), [503, 1]);
  // The second one may cost.
  assertEquals(await statusOf("acme/free", "acme/dear"), [503, 1]);
});

Deno.test("the hold covers the most expensive affordable model, and others are left out", async () => {
  const held: bigint[] = [];
  await using server = startUpstream(twoModels({ cheap: BROKEN }));
  // The budget of 0.05 USD pays for 100 tokens of either model, and for 4,000 of the first alone.
  const group = { budget: { usd: "0.05", period: "total" } };
  await using gateway = start(server.url, { config: { groups: { default: group } } });
  const ask = async (max_tokens: number) => {
    const response = await gateway.ask("chat", askFor("chat", ["acme/cheap", "acme/dear"], { max_tokens }));
    await response.body?.cancel();
    held.push((await entriesOf(gateway)).at(-1)?.held ?? 0n);
    return response.status;
  };
  assertEquals(await ask(100), 200);
  assertEquals(await ask(4_000), 502);
  const [both = 0n, one = 0n] = held;
  const tokens = (amount: bigint, price: bigint) => Number(amount / price);
  // The input is bounded by a few hundred tokens, at 10 USD per million; the output is 100 at 20.
  assert(both >= 100n * 20_000_000n && tokens(both, 10_000_000n) < 2_000, String(both));
  assert(one >= 4_000n * 2_000_000n && tokens(one, 1_000_000n) < 10_000, String(one));
});

Deno.test("a request without a maximum is capped for the first model and its fallbacks alike", async () => {
  await using server = startUpstream(twoModels({ cheap: BROKEN }));
  const group = { budget: { usd: "0.05", period: "total" } };
  await using gateway = start(server.url, { config: { groups: { default: group } } });
  const response = await gateway.ask("chat", askFor("chat", ["acme/cheap", "acme/dear"]));
  assertEquals(response.status, 502, await response.text());
  const [{ body } = { body: "{}" }] = server.requests;
  const { max_tokens = 0 } = JSON.parse(body);
  assert(max_tokens > 10_000 && max_tokens <= 25_000, body);
  // At the other's price the budget would not pay for as many.
  assertEquals(server.requests.length, 1);
});

Deno.test("a malformed function call as Gemini's only output leads to another target, free of charge", async () => {
  const malformed = {
    candidates: [{ content: {}, finishReason: "MALFORMED_FUNCTION_CALL", index: 0 }],
    usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 3, totalTokenCount: 12 },
  };
  for (const stream of [false, true]) {
    await using broken = startUpstream(() =>
      stream ? events(`data: ${JSON.stringify(malformed)}\n\n`) : json(malformed)
    );
    await using sound = startUpstream(twoModels({}));
    const [first, second] = [{ upstream: "broken", model: "g" }, { upstream: "sound", model: "c", priority: 2 }];
    await using gateway = startGateway({
      upstreams: { broken: upstream("gemini", broken.url), sound: upstream("openai-compatible", sound.url) },
      models: [
        model("acme/one", [{ ...first, priority: 1 }, second], { pricing: CHEAP }),
        model("acme/alone", [first], { pricing: CHEAP }),
      ],
    });
    for (const protocol of PROTOCOLS) {
      const response = await gateway.ask(protocol, prompt(protocol, { stream }));
      const text = await response.text();
      assertEquals(response.status, 200, text);
      assertMatch(text, /Hello/);
      const { headers } = response;
      assertEquals(["upstream", "attempts"].map((name) => headers.get(`x-sluice-${name}`)), ["sound", "2"]);
    }
    const alone = await gateway.ask("chat", prompt("chat", { model: "acme/alone", stream }));
    const { error } = await alone.json();
    assertEquals([alone.status, error.message], [502, "The model returned only a malformed function call"]);
    const entries = await entriesOf(gateway);
    assertEquals(entries.map(({ ending, cost, upstream }) => [ending, cost > 0n, upstream]), [
      ...PROTOCOLS.map(() => ["end", true, "sound"]),
      ["failed", false, "broken"],
    ]);
  }
});
