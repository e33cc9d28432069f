import { assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { startGateway, upstream, UPSTREAM_KEY } from "../../support/gateway.ts";
import { json, type ScriptedAnswer, startUpstream, type UpstreamRequest } from "../../upstream/mod.ts";
import { base64Of, embeddingRow, entriesOf, post } from "./retrieval.ts";

const PATH = "/v1/embeddings";

/** The vector of a text that ends in a number: that number, and 1. */
function batch({ json: { requests } }: UpstreamRequest, usage?: JsonObject): ScriptedAnswer {
  const embeddings = requests.map(({ content }: { content: { parts: { text: string }[] } }) => ({
    values: [Number(content.parts[0]?.text.match(/\d+/)?.[0]), 1],
  }));
  return json({ embeddings, ...(usage && { usageMetadata: usage }) });
}

const ROW = { embedding: { dimensions: 8, min_dimensions: 2 } };

Deno.test("gemini: texts are embedded in one batch, with the requested dimensions", async () => {
  await using host = startUpstream((request) => batch(request, { promptTokenCount: 5 }));
  await using gateway = startGateway({
    upstreams: { one: upstream("gemini", host.url, { base_url: `${host.url}/v1beta` }) },
    models: [embeddingRow("acme/vectors", ["one"], ROW)],
  });
  const ask = { model: "acme/vectors", input: ["text 7", "text 8"], dimensions: 2, user: "u" };
  const response = await post(gateway, PATH, ask);
  const { data, usage } = await response.json();
  assertEquals(data.map(({ embedding }: JsonObject) => embedding), [[7, 1], [8, 1]]);
  assertEquals(usage, { prompt_tokens: 5, total_tokens: 5 });
  assertEquals(response.headers.get("x-sluice-dropped"), "user");
  const strict = await post(gateway, PATH, { ...ask, provider: { require_parameters: true } });
  assertEquals(strict.status, 400);
  assertMatch((await strict.json()).error.message, /does not support user/);
  const [sent] = host.requests;
  assertEquals(sent?.path, "/v1beta/models/vectors-1:batchEmbedContents");
  assertEquals(sent?.headers.get("x-goog-api-key"), UPSTREAM_KEY);
  assertEquals(sent?.json, {
    requests: ["text 7", "text 8"].map((text) => ({
      model: "models/vectors-1",
      content: { parts: [{ text }] },
      outputDimensionality: 2,
    })),
  });
  const base64 = await (await post(gateway, PATH, { ...ask, encoding_format: "base64" })).json();
  assertEquals(JSON.stringify(base64.data[1].embedding), base64Of(8, 1));
});

Deno.test("gemini: more than a hundred texts are batched and return in order, counted if unreported", async () => {
  await using host = startUpstream((request) => batch(request));
  await using gateway = startGateway({
    upstreams: { one: upstream("gemini", host.url) },
    models: [embeddingRow("acme/vectors", ["one"])],
  });
  const input = Array.from({ length: 250 }, (_, index) => `text ${index}`);
  const { data, usage } = await (await post(gateway, PATH, { model: "acme/vectors", input })).json();
  assertEquals(data.map(({ index }: JsonObject) => index), input.map((_, index) => index));
  assertEquals(data.map(({ embedding }: { embedding: number[] }) => embedding[0]), input.map((_, index) => index));
  assertEquals(host.requests.map(({ json }) => json.requests.length).sort(), [100, 100, 50]);
  const [entry] = await entriesOf(gateway);
  assertEquals([entry?.tokens.prompt, entry?.source, entry?.attempts], [usage.prompt_tokens, "counted", 1]);
});

Deno.test("gemini: token inputs go to a target that accepts them, or are refused", async () => {
  await using host = startUpstream((request) => batch(request));
  await using other = startUpstream(() =>
    json({ data: [{ index: 0, embedding: [1, 0] }], usage: { prompt_tokens: 2 } })
  );
  await using gateway = startGateway({
    upstreams: { one: upstream("gemini", host.url), two: upstream("openai", other.url) },
    models: [embeddingRow("acme/alone", ["one"]), embeddingRow("acme/both", ["one", "two"])],
  });
  const refused = await post(gateway, PATH, { model: "acme/alone", input: [1, 2] });
  assertEquals(refused.status, 400);
  assertMatch((await refused.json()).error.message, /Cannot embed tokens with this model: send texts/);
  const taken = await post(gateway, PATH, { model: "acme/both", input: [1, 2] });
  assertEquals([taken.status, taken.headers.get("x-sluice-upstream")], [200, "two"], await taken.text());
  assertEquals(host.requests.length, 0);
});

Deno.test("gemini: errors are read in its own format", async () => {
  await using host = startUpstream(() =>
    json({ error: { code: 400, message: "API key not valid", status: "INVALID_ARGUMENT" } }, { status: 400 })
  );
  await using gateway = startGateway({
    upstreams: { one: upstream("gemini", host.url) },
    models: [embeddingRow("acme/vectors", ["one"])],
  });
  const response = await post(gateway, PATH, { model: "acme/vectors", input: "text 1" });
  await response.body?.cancel();
  assertEquals(response.status >= 400, true);
  assertEquals((await entriesOf(gateway))[0]?.ending, "failed");
});
