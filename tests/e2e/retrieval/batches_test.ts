import { assert, assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { startGateway, upstream } from "../../support/gateway.ts";
import { type ScriptedAnswer, startUpstream, type UpstreamRequest } from "../../upstream/mod.ts";
import { embeddingRow, entriesOf, failure, post, vectors } from "./retrieval.ts";

const PATH = "/v1/embeddings";

/** A gateway with `acme/vectors` at a host that takes a few inputs at once. */
function withBatches(url: string, batch: number, others: string[] = []): JsonObject {
  return {
    upstreams: {
      one: upstream("openai", url),
      ...Object.fromEntries(others.map((other, index) => [`other-${index}`, upstream("openai", other)])),
    },
    models: [
      embeddingRow("acme/vectors", [], {
        targets: ["one", ...others.map((_, index) => `other-${index}`)].map((upstream, priority) => ({
          upstream,
          model: "vectors-1",
          batch,
          priority,
        })),
      }),
    ],
  };
}

/** Vectors whose first number is the number in the input. */
function answer({ json: { input } }: UpstreamRequest, usage?: JsonObject | null): ScriptedAnswer {
  const texts = Array.isArray(input) ? input : [input];
  return vectors(texts.map((text) => `[${String(text).match(/\d+/)?.[0]},1]`), usage);
}

const INPUT = Array.from({ length: 7 }, (_, index) => `text ${index}`);

Deno.test("batches are joined in order, each with the client's other members, and usage is summed", async () => {
  await using host = startUpstream((request) => answer(request));
  await using gateway = startGateway(withBatches(host.url, 3));
  const response = await post(gateway, PATH, { model: "acme/vectors", input: INPUT, user: "u" });
  const { data, usage } = await response.json();
  assertEquals(
    data.map(({ index, embedding }: { index: number; embedding: number[] }) => [index, embedding[0]]),
    INPUT.map((_, index) => [index, index]),
  );
  // Three answers of 7 tokens.
  assertEquals([usage.prompt_tokens, response.headers.get("x-sluice-cost")], [21, "0.00000042"]);
  const parts = host.requests.map(({ json }) => json).sort((a, b) => a.input[0] < b.input[0] ? -1 : 1);
  assertEquals(parts.map(({ input }) => input), [INPUT.slice(0, 3), INPUT.slice(3, 6), INPUT.slice(6)]);
  assert(parts.every(({ user, model }) => user === "u" && model === "vectors-1"));
  assertEquals((await entriesOf(gateway)).map(({ attempts }) => attempts), [1]);
});

Deno.test("the results of a batch may be in any order", async () => {
  await using host = startUpstream(({ json: { input } }) => {
    const texts = (input as string[]).map((text, index) =>
      `{"index":${index},"embedding":[${text.match(/\d+/)?.[0]},1]}`
    );
    return { body: `{"data":[${texts.reverse()}]}` };
  });
  await using gateway = startGateway(withBatches(host.url, 4));
  const { data } = await (await post(gateway, PATH, { model: "acme/vectors", input: INPUT })).json();
  assertEquals(data.map(({ embedding }: { embedding: number[] }) => embedding[0]), [0, 1, 2, 3, 4, 5, 6]);
});

Deno.test("if one batch reports no usage, the whole request is counted", async () => {
  await using host = startUpstream((request) => answer(request, request.json.input.length === 1 ? null : undefined));
  await using gateway = startGateway(withBatches(host.url, 3));
  const { usage } = await (await post(gateway, PATH, { model: "acme/vectors", input: INPUT })).json();
  const [entry] = await entriesOf(gateway);
  // "text 0" has 3 tokens.
  assertEquals([usage.prompt_tokens, entry?.source], [21, "counted"]);
});

Deno.test("if one batch fails, the next target gets all of them", async () => {
  await using host = startUpstream((request) => request.json.input.includes("text 4") ? failure(500) : answer(request));
  await using other = startUpstream((request) => answer(request));
  await using gateway = startGateway(withBatches(host.url, 2, [other.url]));
  const response = await post(gateway, PATH, { model: "acme/vectors", input: INPUT });
  const { data } = await response.json();
  assertEquals([response.status, response.headers.get("x-sluice-upstream"), data.length], [200, "other-0", 7]);
  assertEquals(other.requests.length, 4);
  assertEquals((await entriesOf(gateway)).map(({ attempts }) => attempts), [2]);
});

Deno.test("long inputs are split by their possible tokens", async () => {
  await using host = startUpstream((request) => answer(request));
  await using gateway = startGateway(withBatches(host.url, 100));
  const input = INPUT.map((text) => `${text} ${"word ".repeat(20_000)}`);
  const response = await post(gateway, PATH, { model: "acme/vectors", input });
  assertEquals((await response.json()).data.length, 7);
  // At most 300,000 bytes, so two texts.
  assertEquals(host.requests.map(({ json }) => json.input.length).sort(), [1, 2, 2, 2]);
});

Deno.test("an embeddings answer of megabytes reaches the client whole", async () => {
  const vector = `[${Array.from({ length: 2_000 }, () => "0.1234567890123")}]`;
  await using host = startUpstream(({ json: { input } }) => vectors((input as string[]).map(() => vector)));
  await using gateway = startGateway({
    upstreams: { one: upstream("openai", host.url) },
    models: [embeddingRow("acme/vectors", ["one"], { embedding: { dimensions: 2_000 } })],
  });
  const input = Array.from({ length: 200 }, () => "a");
  const text = await (await post(gateway, PATH, { model: "acme/vectors", input })).text();
  assertEquals(text.length > 5_000_000, true);
  assertEquals(JSON.parse(text).data.length, 200);
  assertEquals(text.split(vector).length, 201);
  assertEquals(gateway.requestLines.map(({ bytes_out }) => bytes_out), [text.length]);
});
