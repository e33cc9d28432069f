import { assert, assertEquals, assertMatch } from "@std/assert";
import { stopRequests } from "../../../lib/gateway.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { type GatewayOptions, startGateway, upstream, UPSTREAM_KEY } from "../../support/gateway.ts";
import { othersTurns } from "../../support/others_turns.ts";
import { soon, until } from "../../support/soon.ts";
import { json, type ScriptedAnswer, startUpstream, type UpstreamRequest } from "../../upstream/mod.ts";
import { base64Of, embeddingRow, entriesOf, failure, post, statusOf, vectors } from "./retrieval.ts";

const PATH = "/v1/embeddings";
const ASK = { model: "acme/vectors", input: ["one", "two"] };

/** A gateway with `acme/vectors` at one upstream. */
async function withHost(
  answer: (request: UpstreamRequest, index: number) => ScriptedAnswer,
  test: (gateway: ReturnType<typeof startGateway>, requests: UpstreamRequest[]) => Promise<void>,
  { row = {}, vendor = "openai", config = {}, ...options }:
    & { row?: JsonObject; vendor?: string; config?: JsonObject }
    & Pick<GatewayOptions, "arriving"> = {},
): Promise<void> {
  await using host = startUpstream(answer);
  await using gateway = startGateway({
    upstreams: { one: upstream(vendor, host.url) },
    models: [embeddingRow("acme/vectors", ["one"], row)],
    ...config,
  }, options);
  await test(gateway, host.requests);
}

Deno.test("embeddings: the request passes unchanged, and vectors return with their own digits", async () => {
  await withHost(() => vectors(["[0.10000000000000000001, -1.50E-3]", "[1,0]"]), async (gateway, requests) => {
    const response = await post(gateway, PATH, { ...ASK, user: "u", task: "search", models: ["acme/vectors"] });
    assertEquals(response.status, 200);
    assertEquals(response.headers.get("x-sluice-upstream"), "one");
    // 7 tokens at 0.02 USD per million.
    assertEquals(response.headers.get("x-sluice-cost"), "0.00000014");
    const text = await response.text();
    assert(text.includes('"embedding":[0.10000000000000000001, -1.50E-3]'), text);
    assertEquals(JSON.parse(text).model, "acme/vectors");
    assertEquals(JSON.parse(text).usage, { prompt_tokens: 7, total_tokens: 7 });
    const [sent] = requests;
    assertEquals(sent?.path, "/v1/embeddings");
    assertEquals(sent?.headers.get("authorization"), `Bearer ${UPSTREAM_KEY}`);
    assertEquals(sent?.json, { model: "vectors-1", input: ["one", "two"], user: "u", task: "search" });
    const [entry] = await entriesOf(gateway);
    assertEquals(
      [entry?.endpoint, entry?.model, entry?.upstream, entry?.tokens.prompt, entry?.source, entry?.cost, entry?.ending],
      ["embeddings", "acme/vectors", "one", 7, "upstream", 140_000n, "end"],
    );
  });
});

Deno.test("embeddings: vectors are converted only if the upstream uses another format", async () => {
  const numbers = "[0.5,-0.25]";
  const cases = [
    { asks: "base64", gives: base64Of(0.5, -0.25), gets: base64Of(0.5, -0.25) },
    { asks: "base64", gives: base64Of(0.5, -0.25).replaceAll("/", "\\/"), gets: base64Of(0.5, -0.25) },
    { asks: "base64", gives: numbers, gets: base64Of(0.5, -0.25) },
    { asks: "float", gives: base64Of(0.5, -0.25), gets: numbers },
    { asks: undefined, gives: base64Of(0.5, -0.25), gets: numbers },
    { asks: null, gives: numbers, gets: numbers },
  ];
  for (const { asks, gives, gets } of cases) {
    await withHost(() => vectors([gives]), async (gateway, requests) => {
      const response = await post(gateway, PATH, { ...ASK, input: "one", encoding_format: asks });
      assertEquals(JSON.stringify((await response.json()).data[0].embedding), gets);
      // Some hosts refuse null.
      assertEquals(requests[0]?.json.encoding_format, asks ?? undefined);
    });
  }
});

Deno.test("embeddings: invalid inputs are refused before an upstream is called", async () => {
  await withHost(() => vectors([]), async (gateway, requests) => {
    const cases: [input: unknown, message: RegExp][] = [
      [undefined, /Missing required parameter: input/],
      ["", /not empty/],
      [[], /1 to 2048/],
      [["a", ""], /input\[1\].*not empty/],
      [[[]], /input\[0\]/],
      [{}, /Expected a text, or an array/],
      [[1.5], /whole number/],
      [[-1], /./],
      [["a", 1], /input\[1\].*not empty/],
      [[1, "a"], /input\[1\].*whole number/],
      [[[1], [2, 1.5]], /input\[1\]\[1\].*whole number/],
      [[{}], /input\[0\]/],
      [null, /Expected a text, or an array/],
      [Array.from({ length: 2_049 }, () => "a"), /2048/],
      [Array.from({ length: 8_193 }, () => 1), /8192/],
    ];
    for (const [input, message] of cases) {
      const response = await post(gateway, PATH, { ...ASK, input } as JsonObject);
      const { error } = await response.json();
      assertEquals(response.status, 400, JSON.stringify(error));
      assertMatch(error.message, message);
      assertEquals(error.type, "invalid_request_error");
    }
    assertEquals(requests, []);
    assertEquals(
      (await entriesOf(gateway)).map(({ ending, cost }) => [ending, cost]),
      cases.map(() => ["refused", 0n]),
    );
  });
});

Deno.test("embeddings: dimensions must fit the model, and are not sent to hosts with one length", async () => {
  const fixed = { embedding: { dimensions: 2 } };
  await withHost(() => vectors(["[1,0]"]), async (gateway, requests) => {
    const refused = await post(gateway, PATH, { ...ASK, input: "a", dimensions: 3 });
    assertEquals(refused.status, 400);
    assertMatch((await refused.json()).error.message, /"acme\/vectors" has 2 dimensions/);
    assertEquals(await statusOf(post(gateway, PATH, { ...ASK, input: "a", dimensions: 2 })), 200);
    assertEquals(requests.map(({ json }) => json.dimensions), [undefined]);
  }, { row: fixed });
  const flexible = { embedding: { dimensions: 8, min_dimensions: 2 } };
  await withHost(() => vectors(["[1,0]"]), async (gateway, requests) => {
    assertEquals(await statusOf(post(gateway, PATH, { ...ASK, input: "a", dimensions: 2 })), 200);
    for (const dimensions of [1, 9]) {
      const refused = await post(gateway, PATH, { ...ASK, input: "a", dimensions });
      assertMatch((await refused.json()).error.message, /has 2 to 8 dimensions/);
    }
    assertEquals(requests.map(({ json }) => json.dimensions), [2]);
  }, { row: flexible });
});

Deno.test("embeddings: unreported usage is counted, token inputs by their number", async () => {
  const cases: [input: unknown, usage: JsonObject | null, tokens: number, source: string][] = [
    ["hello world", null, 2, "counted"],
    ["hello world", { prompt_tokens: 0, total_tokens: 0 }, 2, "counted"],
    ["hello world", { prompt_tokens: -5 }, 2, "counted"],
    ["hello world", { total_tokens: 9 }, 9, "upstream"],
    [[1, 2, 3], null, 3, "counted"],
  ];
  for (const [input, usage, tokens, source] of cases) {
    await withHost(() => vectors(["[1,0]"], usage), async (gateway) => {
      const response = await post(gateway, PATH, { ...ASK, input } as JsonObject);
      assertEquals((await response.json()).usage.prompt_tokens, tokens);
      const [entry] = await entriesOf(gateway);
      assertEquals([entry?.tokens.prompt, entry?.source], [tokens, source]);
    });
  }
});

Deno.test("embeddings: invalid vectors are neither passed on nor charged", async () => {
  const cases: [name: string, answer: ScriptedAnswer][] = [
    ["not JSON", { body: "<html>" }],
    ["too few", vectors(["[1,0]"])],
    ["of another length", vectors(["[1,0,0]", "[1,0,0]"])],
    ["not numbers", vectors(['[1,"a"]', "[1,0]"])],
    ["no number between commas", vectors(["[1,]", "[1,0]"])],
    ["without an end", { body: '{"data":[{"embedding":[1,0' }],
    ["not base64", vectors(['"äö"', "[1,0]"])],
    ["base64 of no number", vectors([base64Of(NaN, 1), "[1,0]"])],
    ["twice the same index", vectors(["[1,0]", "[1,0]"])],
    ["an error with status 200", json({ error: { message: "no" } })],
  ];
  for (const [name, answer] of cases) {
    const played = name.startsWith("twice")
      ? { ...answer, body: String(answer.body).replace('"index":1', '"index":0') }
      : answer;
    await withHost(() => played, async (gateway) => {
      const response = await post(gateway, PATH, ASK);
      assertEquals(response.status, 502, `${name}: ${await response.text()}`);
      const [entry] = await entriesOf(gateway);
      assertEquals([entry?.ending, entry?.cost], ["failed", 0n], name);
    });
  }
});

Deno.test("embeddings: fallbacks stay within one vector space", async () => {
  await using first = startUpstream(() => failure(503));
  await using second = startUpstream(() => vectors(["[1,0]", "[0,1]"]));
  const space = (name: string) => ({ embedding: { dimensions: 2, space: name } });
  await using gateway = startGateway({
    upstreams: { one: upstream("openai", first.url), two: upstream("openai", second.url) },
    models: [
      embeddingRow("acme/vectors", ["one"], space("v1")),
      embeddingRow("acme/same", ["two"], space("v1")),
      embeddingRow("acme/other", ["two"], space("v2")),
      embeddingRow("acme/none", ["two"]),
    ],
  });
  const same = await post(gateway, PATH, { ...ASK, models: ["acme/same"] });
  assertEquals([same.status, (await same.json()).model], [200, "acme/same"]);
  for (const other of ["acme/other", "acme/none"]) {
    const refused = await post(gateway, PATH, { ...ASK, models: [other] });
    const { error } = await refused.json();
    assertEquals([refused.status, error.param], [400, "models"]);
    assertMatch(error.message, /vector spaces differ/);
  }
  assertEquals(second.requests.length, 1);
});

Deno.test("embeddings: the error names the right endpoint, in both directions", async () => {
  await using gateway = startGateway({});
  const chat = (model: string) => ({ model, messages: [{ role: "user", content: "a" }] });
  const cases: [path: string, body: JsonObject, message: RegExp][] = [
    [PATH, { model: "sluice/echo", input: "a" }, /use POST \/v1\/chat\/completions/],
    [PATH, { model: "sluice/canvas", input: "a" }, /use POST \/v1\/images/],
    [PATH, { model: "sluice/rerank", input: "a" }, /use POST \/v1\/rerank/],
    ["/v1/chat/completions", chat("sluice/embed"), /use POST \/v1\/embeddings/],
    ["/v1/responses", { model: "sluice/rerank", input: "a" }, /use POST \/v1\/rerank/],
    ["/v1/images/generations", { model: "sluice/embed", prompt: "a", quality: "low" }, /use POST \/v1\/embeddings/],
    ["/v1/rerank", { model: "sluice/embed", query: "a", documents: ["a"] }, /use POST \/v1\/embeddings/],
  ];
  for (const [path, body, message] of cases) {
    const response = await post(gateway, path, body);
    const { error } = await response.json();
    assertEquals([response.status, error.param], [400, "model"]);
    assertMatch(error.message, message);
  }
});

Deno.test("embeddings: a budget holds the highest cost, and refuses what it cannot pay", async () => {
  const answered = Promise.withResolvers<void>();
  await using host = startUpstream(() => ({ ...vectors(["[1,0]"]), before: answered.promise }));
  await using gateway = startGateway({
    upstreams: { one: upstream("openai", host.url) },
    models: [embeddingRow("acme/vectors", ["one"])],
  });
  // 100 bytes and a frame are at most 116 tokens, at 0.00000002 USD.
  const ask = { model: "acme/vectors", input: "a".repeat(100) };
  const poor = await gateway.addKey({ rules: { budget: { usd: "0.0000023", period: "total" } } });
  assertEquals(await statusOf(post(gateway, PATH, ask, { key: poor })), 429);
  const rich = await gateway.addKey({ rules: { budget: { usd: "0.0000024", period: "total" } } });
  const running = post(gateway, PATH, ask, { key: rich });
  await until("the request", () => host.requests.length > 0);
  assertEquals((await gateway.store.ledger.holds()).map(({ amount }) => amount), [2_320_000n]);
  answered.resolve();
  assertEquals(await statusOf(running), 200);
  const entry = (await entriesOf(gateway)).find(({ ending }) => ending === "end");
  assertEquals([entry?.held, entry?.cost, entry?.overrun], [2_320_000n, 140_000n, 0n]);
  assertEquals(await gateway.store.ledger.holds(), []);
});

Deno.test("embeddings: limits count requests and tokens", async () => {
  await withHost(() => vectors(["[1,0]", "[0,1]"]), async (gateway) => {
    const key = await gateway.addKey({ rules: { limits: { tokens_per_minute: 10, report_only: false } } });
    const first = await post(gateway, PATH, ASK, { key });
    await first.body?.cancel();
    assertEquals([first.status, first.headers.get("x-ratelimit-remaining-tokens")], [200, "3"]);
    const second = post(gateway, PATH, { ...ASK, input: ["a longer text that is", "more than three tokens"] }, {
      key,
    });
    assertEquals(await statusOf(second), 429);
  });
});

Deno.test("embeddings: a disconnected client pays for running work, unless the model says cancel", async () => {
  for (const on_disconnect of ["auto", "cancel"]) {
    const answered = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    const disconnected = Promise.withResolvers<void>();
    const arriving = ({ signal }: Request) => signal.addEventListener("abort", () => disconnected.resolve());
    await withHost(() => {
      reached.resolve();
      return { ...vectors(["[1,0]", "[0,1]"]), before: answered.promise };
    }, async (gateway, requests) => {
      const client = new AbortController();
      const pending = post(gateway, PATH, ASK, { signal: client.signal }).catch(() => undefined);
      await soon("the upstream", reached.promise);
      client.abort();
      await pending;
      if (on_disconnect === "cancel") await soon("the cancelled call", requests[0]?.gone ?? Promise.reject());
      else {
        await soon("the disconnect", disconnected.promise);
        // The gateway may read the signal up to 20 ms after the beginning of the request.
        await othersTurns();
      }
      answered.resolve();
      await soon("the end", gateway.gateway.inFlight.whenDone());
      const [entry] = await entriesOf(gateway);
      assertEquals(
        [entry?.ending, entry?.status, entry?.cost],
        on_disconnect === "cancel" ? ["failed", 499, 0n] : ["client_disconnected", 499, 140_000n],
      );
    }, { row: { on_disconnect }, arriving });
  }
});

Deno.test("embeddings: an endpoint without permission is refused, and its models are not listed", async () => {
  await using gateway = startGateway({ groups: { text: { models: ["*"], endpoints: ["chat", "models"] } } });
  const key = await gateway.addKey({ group: "text" });
  assertEquals(await statusOf(post(gateway, PATH, { model: "sluice/embed", input: "a" }, { key })), 403);
  const list = async (headers: HeadersInit) => {
    const { data } = await (await fetch(`${gateway.url}/v1/models`, { headers })).json();
    return data.map(({ id }: { id: string }) => id);
  };
  assertEquals(await list({ authorization: `Bearer ${key.key}` }), ["sluice/echo"]);
  const all = await list({ authorization: `Bearer ${gateway.key.key}` });
  assertEquals(all.filter((id: string) => /embed|rerank/.test(id)), ["sluice/embed", "sluice/rerank"]);
  const { embedding } = await (await fetch(`${gateway.url}/v1/models/sluice/embed`, {
    headers: { authorization: `Bearer ${gateway.key.key}` },
  })).json();
  assertEquals(embedding, {
    dimensions: 1_536,
    min_dimensions: 64,
    max_input_tokens: 8_192,
    space: "sluice/embed",
  });
});

Deno.test("embeddings: a shutdown aborts running work, free of charge", async () => {
  const reached = Promise.withResolvers<void>();
  const never = Promise.withResolvers<void>();
  await withHost(() => {
    reached.resolve();
    return { ...vectors(["[1,0]", "[0,1]"]), before: never.promise };
  }, async (running, requests) => {
    const pending = post(running, PATH, ASK);
    await soon("the upstream", reached.promise);
    await stopRequests(running.gateway);
    const response = await pending;
    assertEquals(response.status, 503, await response.text());
    await soon("the cancelled call", requests[0]?.gone ?? Promise.reject());
    const [entry] = await entriesOf(running);
    assertEquals([entry?.ending, entry?.cost], ["failed", 0n]);
  });
});

Deno.test("retrieval: an alternative spelling of a known member is refused", async () => {
  await using gateway = startGateway({});
  const cases: [path: string, body: JsonObject, param: string][] = [
    [PATH, { model: "sluice/embed", input: "a", Input: ["long"] }, "Input"],
    [PATH, { model: "sluice/embed", input: "a", "dimen\u017fions": 9 }, "dimen\u017fions"],
    ["/v1/rerank", { model: "sluice/rerank", query: "a", documents: ["a"], DOCUMENTS: ["a", "b"] }, "DOCUMENTS"],
  ];
  for (const [path, body, param] of cases) {
    const response = await post(gateway, path, body);
    const { error } = await response.json();
    assertEquals([response.status, error.param], [400, param]);
    assertMatch(error.message, /expected "\w+"/);
  }
});
