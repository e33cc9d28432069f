import { assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { explainEntry } from "../../../lib/billing/reports/explain.ts";
import { startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { json, startUpstream, type UpstreamRequest } from "../../upstream/mod.ts";
import { embeddingRow, entriesOf, failure, post, rerankRow, statusOf, vectors } from "./retrieval.ts";

const PATH = "/v1/embeddings";
const ASK = { model: "acme/first", models: ["acme/second"], input: "a".repeat(84) };

/** Two models of one space, at prices per token; the first fails unless `sound`. */
async function withTwo(
  { prices, rows = [{}, {}], sound = false }: { prices: [string, string]; rows?: JsonObject[]; sound?: boolean },
  test: (gateway: TestGateway, requests: UpstreamRequest[][]) => Promise<void>,
): Promise<void> {
  await using first = startUpstream(() => sound ? vectors(["[1,0]"]) : failure(500));
  await using second = startUpstream(() => vectors(["[0,1]"]));
  const row = (id: string, host: string, index: number) =>
    embeddingRow(id, [host], {
      embedding: { dimensions: 2, space: "s" },
      pricing: { prompt: prices[index] ?? "0", completion: "0" },
      ...rows[index],
    });
  await using gateway = startGateway({
    upstreams: { one: upstream("openai", first.url), two: upstream("openai", second.url) },
    models: [row("acme/first", "one", 0), row("acme/second", "two", 1)],
  });
  await test(gateway, [first.requests, second.requests]);
}

Deno.test("the hold covers the most expensive model that may answer, and the bill is that of the answering one", async () => {
  await withTwo({ prices: ["0.000001", "0.000002"] }, async (gateway) => {
    const key = await gateway.addKey({ rules: { budget: { usd: "1", period: "total" } } });
    const response = await post(gateway, PATH, ASK, { key });
    assertEquals([response.status, (await response.json()).model], [200, "acme/second"]);
    const [entry] = await entriesOf(gateway);
    // 84 bytes and a frame of 16 tokens; the answer reports 7.
    assertEquals([entry?.model, entry?.held, entry?.cost], ["acme/second", 200_000_000n, 14_000_000n]);
  });
});

Deno.test("a model beyond the budget is left out", async () => {
  await withTwo({ prices: ["0.000001", "0.000002"] }, async (gateway, [, second]) => {
    const key = await gateway.addKey({ rules: { budget: { usd: "0.00015", period: "total" } } });
    const response = await post(gateway, PATH, ASK, { key });
    await response.body?.cancel();
    assertEquals([response.status, second?.length], [502, 0]);
    const [entry] = await entriesOf(gateway);
    assertEquals([entry?.held, entry?.ending], [100_000_000n, "failed"]);
  });
});

Deno.test("if the first model is full or too expensive for the client, the next one leads", async () => {
  const rows = [{ limits: { requests_per_minute: 1 } }, {}];
  await withTwo({ prices: ["0.000002", "0.000001"], rows, sound: true }, async (gateway) => {
    for (const expected of ["acme/first", "acme/second"]) {
      const response = await post(gateway, PATH, ASK);
      assertEquals((await response.json()).model, expected);
    }
    const cheap = await post(gateway, PATH, { ...ASK, provider: { max_price: { prompt: 1.5 } } });
    assertEquals((await cheap.json()).model, "acme/second");
    const named = await post(gateway, PATH, { ...ASK, provider: { only: ["two"] } });
    assertEquals(named.headers.get("x-sluice-upstream"), "two", await named.text());
  });
});

Deno.test("entries of embeddings and reranking have the upstream's request id, also after a failed attempt", async () => {
  const named = (answer: ReturnType<typeof json>, id: string) => ({
    ...answer,
    headers: { ...answer.headers, "x-request-id": id },
  });
  let fails = false;
  await using first = startUpstream(({ path }) =>
    fails
      ? named(failure(500), "vendor-failed")
      : path.endsWith("rerank")
      ? named(json({ results: [] }), "vendor-ranks")
      : named(vectors(["[1,0]"]), "vendor-vectors")
  );
  await using second = startUpstream(() => named(vectors(["[0,1]"]), "vendor-second"));
  await using gateway = startGateway({
    upstreams: { one: upstream("openai-compatible", first.url), two: upstream("openai", second.url) },
    models: [embeddingRow("acme/vectors", ["one", "two"]), rerankRow("acme/ranks", ["one"])],
  });
  const ask = { model: "acme/vectors", input: "one" };
  assertEquals(await statusOf(post(gateway, PATH, ask)), 200);
  const ranking = { model: "acme/ranks", query: "a", documents: ["b"] };
  assertEquals(await statusOf(post(gateway, "/v1/rerank", ranking)), 200);
  fails = true;
  assertEquals(await statusOf(post(gateway, PATH, ask)), 200);
  const explained = (await entriesOf(gateway)).map((entry) => explainEntry(entry));
  assertEquals(explained.map(({ upstream_request_id: id }) => id), ["vendor-vectors", "vendor-ranks", "vendor-second"]);
  const attempts = explained.at(-1)?.attempt_list.map(({ request_id }) => request_id);
  assertEquals([attempts?.[0], attempts?.at(-1)], ["vendor-failed", "vendor-second"]);
});
