import { assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { startGateway, upstream } from "../../support/gateway.ts";
import { json, type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";
import { entriesOf, failure, post, rerankRow, statusOf } from "./retrieval.ts";

const PATH = "/v1/rerank";
const ASK = { model: "acme/ranks", query: "reset a password", documents: ["shipping", { text: "reset it here" }] };
const RESULTS = [{ index: 1, relevance_score: 0.98 }, { index: 0, relevance_score: 0.01 }];

/** Cost of one answer at prices per token and per search, with the tokens and the source of the entry. */
async function billOf(answer: ScriptedAnswer, pricing: JsonObject, ask: JsonObject = ASK, bought?: JsonObject) {
  await using host = startUpstream(() => answer);
  await using gateway = startGateway({
    upstreams: { one: upstream("openai-compatible", host.url) },
    models: [
      rerankRow("acme/ranks", [], {
        pricing,
        targets: [{ upstream: "one", model: "vectors-1", ...(bought && { pricing: bought }) }],
      }),
    ],
  });
  const response = await post(gateway, PATH, ask);
  const body = await response.json();
  assertEquals(response.status, 200, JSON.stringify(body));
  const [entry] = await entriesOf(gateway);
  return { body, sent: host.requests[0], entry, cost: response.headers.get("x-sluice-cost") };
}

Deno.test("rerank: the answer of a compatible upstream is passed on with the public model id", async () => {
  const given = { id: "r-1", model: "vectors-1", usage: { total_tokens: 21, prompt_tokens: 21 }, results: RESULTS };
  const { body, sent, entry, cost } = await billOf(json(given), { prompt: "0.00000002", completion: "0" }, {
    ...ASK,
    top_n: 2,
    return_documents: null,
    max_tokens_per_doc: 512,
  });
  assertEquals(body, { ...given, model: "acme/ranks", meta: { billed_units: { search_units: 1 } } });
  assertEquals(sent?.path, "/v1/rerank");
  assertEquals(sent?.json, { ...ASK, model: "vectors-1", top_n: 2, max_tokens_per_doc: 512 });
  assertEquals([entry?.endpoint, entry?.tokens.prompt, entry?.source], ["rerank", 21, "upstream"]);
  assertEquals(cost, "0.00000042");
});

Deno.test("rerank: searches are billed as reported, or one per hundred documents", async () => {
  const pricing = { prompt: "0", completion: "0", request: "0.002" };
  const reported = await billOf(json({ results: RESULTS, meta: { billed_units: { search_units: 3 } } }), pricing);
  assertEquals(reported.cost, "0.006");
  assertEquals(reported.body.meta, { billed_units: { search_units: 3 } });
  assertEquals(reported.entry?.details?.extras, [{ item: "request", count: 3, price: "0.002" }]);
  assertEquals((await billOf(json({ results: RESULTS }), pricing)).cost, "0.002");
  const many = { ...ASK, documents: Array.from({ length: 101 }, () => "a") };
  assertEquals((await billOf(json({ results: [] }), pricing, many)).cost, "0.004");
  const bought = { ...pricing, request: "0.001" };
  const { entry } = await billOf(json({ results: RESULTS }), pricing, ASK, bought);
  assertEquals(entry?.details?.upstream_usd, "0.001");
  const absurd = await billOf(json({ results: [], meta: { billed_units: { search_units: -1 } } }), pricing);
  assertEquals(absurd.cost, "0.002");
});

Deno.test("rerank: unreported tokens are counted: the query with each document", async () => {
  const { body, entry } = await billOf(json({ results: RESULTS }), { prompt: "0.000001", completion: "0" });
  // "reset a password" has 3 tokens and is read twice, "shipping" has 1, "reset it here" 3.
  assertEquals([entry?.tokens.prompt, entry?.source, entry?.cost], [10, "counted", 10_000_000n]);
  assertEquals(body.usage, { prompt_tokens: 10, total_tokens: 10 });
});

Deno.test("rerank: a budget holds the highest cost of searches", async () => {
  await using host = startUpstream(() => json({ results: RESULTS }));
  await using gateway = startGateway({
    upstreams: { one: upstream("vllm", host.url) },
    models: [
      rerankRow("acme/ranks", ["one"], { pricing: { prompt: "0", completion: "0", request: "0.002" } }),
    ],
  });
  const poor = await gateway.addKey({ rules: { budget: { usd: "0.0019", period: "total" } } });
  assertEquals(await statusOf(post(gateway, PATH, ASK, { key: poor })), 429);
  const rich = await gateway.addKey({ rules: { budget: { usd: "0.002", period: "total" } } });
  assertEquals(await statusOf(post(gateway, PATH, ASK, { key: rich })), 200);
  const entry = (await entriesOf(gateway)).find(({ ending }) => ending === "end");
  assertEquals([entry?.held, entry?.cost], [2_000_000_000n, 2_000_000_000n]);
});

Deno.test("rerank: invalid rankings lead to the next target", async () => {
  const answers: ScriptedAnswer[] = [
    failure(500),
    { body: "<html>" },
    json({ data: [] }),
    json({ results: [{ index: 2, relevance_score: 1 }] }),
    json({ results: [{ index: 0 }] }),
    json({ results: [{ index: -1, relevance_score: 1 }] }),
    json({ results: [...RESULTS, ...RESULTS, ...RESULTS, ...RESULTS] }),
  ];
  for (const answer of answers) {
    await using first = startUpstream(() => answer);
    await using second = startUpstream(() => json({ results: RESULTS }));
    await using gateway = startGateway({
      upstreams: { one: upstream("vllm", first.url), two: upstream("vllm", second.url) },
      models: [rerankRow("acme/ranks", ["one", "two"])],
    });
    const response = await post(gateway, PATH, ASK);
    assertEquals([response.status, response.headers.get("x-sluice-upstream")], [200, "two"], await response.text());
  }
});

Deno.test("rerank: invalid requests are refused", async () => {
  await using gateway = startGateway({});
  const cases: [change: JsonObject, param: string, message: RegExp][] = [
    [{ query: "" }, "query", /not empty/],
    [{ documents: [] }, "documents", /./],
    [{ documents: Array.from({ length: 2_049 }, () => "a") }, "documents", /2048/],
    [{ documents: [1] }, "documents[0]", /./],
    [{ top_n: 0 }, "top_n", /./],
  ];
  for (const [change, param, message] of cases) {
    const response = await post(gateway, PATH, { ...ASK, model: "sluice/rerank", ...change });
    const { error } = await response.json();
    assertEquals([response.status, error.param], [400, param]);
    assertMatch(error.message, message);
  }
});

Deno.test("rerank: the embedded model prefers documents with the words of the query", async () => {
  await using gateway = startGateway({});
  const documents = [
    "Parcels are delivered within five days.",
    "To reset your password, open the settings.",
    "Our office is in Lisbon.",
  ];
  const ask = { model: "sluice/rerank", query: "How do I reset my password?", documents };
  const first = await (await post(gateway, PATH, { ...ask, return_documents: true, top_n: 1 })).json();
  assertEquals(first.results.map(({ index, document }: JsonObject) => [index, document]), [[1, {
    text: documents[1],
  }]]);
  const all = await (await post(gateway, PATH, ask)).json();
  assertEquals(all.results.length, 3);
  assertEquals(all.results, (await (await post(gateway, PATH, ask)).json()).results);
});

Deno.test("the embedded models name members that they do not know", async () => {
  await using gateway = startGateway({});
  const requests: [path: string, request: JsonObject][] = [
    ["/v1/embeddings", { model: "sluice/embed", input: "a", user: "u", encoding_format: "float" }],
    [PATH, { model: "sluice/rerank", query: "a", documents: ["a"], top_n: 1, return_documents: true }],
  ];
  for (const [path, request] of requests) {
    for (const [more, dropped] of [[{}, null], [{ task: "search", other: null }, "task"]] as const) {
      const response = await post(gateway, path, { ...request, ...more });
      await response.body?.cancel();
      assertEquals(response.headers.get("x-sluice-dropped"), dropped);
    }
    const strict = await post(gateway, path, { ...request, task: "search", provider: { require_parameters: true } });
    assertEquals([strict.status, (await strict.json()).error.param], [400, "task"]);
  }
});
