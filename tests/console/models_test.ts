import { assert, assertEquals, assertMatch, assertNotEquals, assertStringIncludes } from "@std/assert";
import type { JsonObject } from "../../lib/json/mod.ts";
import { startGateway, upstream } from "../support/gateway.ts";
import { ADMIN_KEY, VIEWER_KEY } from "../support/keyed_gateway.ts";
import { json, type ScriptedAnswer, startUpstream } from "../upstream/mod.ts";
import { signedIn } from "./browser.ts";
import { plainModel } from "../support/plain_model.ts";

const OPTIONS = { adminKey: ADMIN_KEY, viewerKey: VIEWER_KEY, now: Date.now, breakers: true };

/** A whole answer of chat with 10 and 2 tokens. */
const ANSWER = json({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "OK" } }],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
});

const BROKEN: ScriptedAnswer = {
  status: 500,
  headers: { "content-type": "application/json" },
  body: '{"error":{"message":"The <b>disk</b> is full","type":"server_error"}}',
};

/** A model with a target at each of these hosts, and what a group of keys allows. */
function fileOf(urls: readonly string[], more: JsonObject = {}): JsonObject {
  return {
    admin: { key: { env: "ADMIN_KEY" }, viewer_key: { env: "VIEWER_KEY" } },
    upstreams: Object.fromEntries(urls.map((url, index) => [`host${index}`, upstream("openai-compatible", url)])),
    models: [plainModel({
      pricing: { prompt: "0.001", completion: "0.002" },
      targets: urls.map((_, index) => ({ upstream: `host${index}`, model: `real-${index}`, priority: index })),
    })],
    ...more,
  };
}

Deno.test("a test asks exactly the chosen target once, and its cost is in the ledger under a name of its own", async () => {
  await using first = startUpstream(() => ANSWER);
  await using second = startUpstream(() => ANSWER);
  await using gateway = startGateway(
    fileOf([first.url, second.url], {
      groups: { default: { models: [], budget: { usd: "0" } } },
    }),
    OPTIONS,
  );
  const browser = await signedIn(gateway);
  const { status, html } = await browser.post("/models", { model: "acme/one", target: "1" });
  assertEquals([status, first.requests.length, second.requests.length], [200, 0, 1]);
  assertEquals(second.requests[0]?.json.model, "real-1");
  assertStringIncludes(html, "The target answered.");
  assertStringIncludes(html, 'title="0.014 USD"');
  const [, id = ""] = /href="\/admin\/console\/requests\/(req_\w+)"/.exec(html) ?? [];
  const entry = await gateway.store.ledger.find(id.replace("req_", ""));
  assertEquals([entry?.keyId, entry?.upstream, entry?.status], ["system:target-test", "host1", 200]);
  assertEquals(entry?.details?.tags, ["target-test"]);
  const { html: page } = await browser.get(`/requests/${id}`);
  assertStringIncludes(page, "target test");
  assertStringIncludes(page, "admin key from 127.0.0.1");
  const links = [page, (await browser.get("/usage?by=key")).html].map((html) =>
    /href="\/admin\/console(\/[^"]*)">target test</.exec(html)?.[1]?.replaceAll("&amp;", "&") ?? "none"
  );
  for (const path of links) assertStringIncludes((await browser.get(path)).html, `/requests/${id}`, path);
  const [change] = await gateway.store.operators.changes({ limit: 1 });
  assertEquals([change?.action, change?.author, change?.subject], [
    "test_target",
    "admin_key",
    "acme/one at host1: real-1",
  ]);
  assertEquals(change?.after?.status, 200);
});

Deno.test("the page of models shows every price, that of the vendor, and those of later", async () => {
  const prices = { prompt: "0.0000008", completion: "0.000004" };
  await using gateway = startGateway({
    admin: { key: { env: "ADMIN_KEY" } },
    upstreams: { host: { vendor: "openai-compatible", base_url: "http://127.0.0.1:9/v1" } },
    models: [plainModel({
      context_length: 1_000_000,
      pricing: {
        ...prices,
        input_cache_write_1h: "0.0000016",
        context_tiers: [{ above: 200_000, prompt: "0.000002", completion: "0.00001" }],
        service_tiers: { priority: { prompt: "0.000003", completion: "0.000012" } },
        hosted_tools: { web_search: "0.01" },
        time_windows: [{
          name: "off-peak",
          from: "16:30",
          until: "00:30",
          prompt: "0.0000004",
          completion: "0.000002",
        }],
      },
      price_changes: [{ from: "2999-01-01T00:00:00Z", prompt: "0.000001", completion: "0.000005" }],
      targets: [{ upstream: "host", model: "real", pricing: { prompt: "0.0000005", completion: "0.000003" } }],
    })],
  }, { ...OPTIONS, now: () => Date.parse("2026-11-23T12:00:00Z") });
  const { html } = await (await signedIn(gateway)).get("/models");
  const [, row = ""] = /<td ?>acme\/one<\/td>(.*?)<\/tr>/.exec(html) ?? [];
  const texts = [...row.matchAll(/>([^<]+)</g)].map(([, text]) => text).slice(1);
  assertEquals(texts, [
    ...["$0.80", "$0.80", "$4"],
    "cache writes for 1 hour: $1.60",
    "above 200,000 tokens: $2 / $10",
    "tier priority: $3 / $12",
    "each call of web_search: $0.01",
    "16:30 to 00:30 UTC (off-peak): $0.40 / $2",
    "from 2999-01-01 00:00 UTC: $1 / $5",
    "host: real, at $0.50 / $3",
  ]);
});

Deno.test("a test shows the vendor's status and message, goes past an open breaker, and changes no target's state", async () => {
  let answer = BROKEN;
  await using host = startUpstream(() => answer);
  await using gateway = startGateway(fileOf([host.url]), OPTIONS);
  const browser = await signedIn(gateway);
  const test = () => browser.post("/models", { model: "acme/one", target: "0" });
  const { html } = await test();
  assertStringIncludes(html, "The target did not answer.");
  assertMatch(html, /Status of the vendor<\/dt><dd>500/);
  assertStringIncludes(html, "The &lt;b>disk&lt;/b> is full");
  assert(!html.includes("<b>"));
  assertEquals(host.requests.length, 1, "a test is not repeated");
  assertEquals(gateway.gateway.health.snapshot(), []);

  const body = { model: "acme/one", messages: [{ role: "user", content: "Hello" }] };
  let state: string | undefined;
  for (let count = 0; count < 50 && state !== "open"; count++) {
    await (await gateway.ask("chat", body)).body?.cancel();
    state = gateway.gateway.health.snapshot()[0]?.state;
  }
  assertEquals(state, "open");
  const page = (await browser.get("/models")).html;
  assertStringIncludes(page, '<span class="state bad">breaker open</span>');
  assertMatch(page, /<\/time>: 500 The &lt;b>disk&lt;\/b> is full/);
  assertMatch(page, /100% of \d+/);
  assertMatch(page, /0 of \d+/);

  answer = ANSWER;
  const before = host.requests.length;
  assertStringIncludes((await test()).html, "The target answered.");
  assertEquals(host.requests.length, before + 1);
  assertEquals(gateway.gateway.health.snapshot()[0]?.state, "open");
});

Deno.test("a target without an answer is shown with the reason, and its last failure is that of clients' requests", async () => {
  await using gateway = startGateway(
    fileOf(["http://127.0.0.1:9"], { routing: { breaker: { window_ms: 90_000 } } }),
    OPTIONS,
  );
  const browser = await signedIn(gateway);
  const { status, html } = await browser.post("/models", { model: "acme/one", target: "0" });
  assertEquals(status, 200);
  assertStringIncludes(html, "The target did not answer.");
  assertMatch(html, /<p class="notice bad">[^<]+<\/p>/);
  assertNotEquals(/Status<\/dt><dd>(\d+)/.exec(html)?.[1], "200");
  const { html: page } = await browser.get("/models");
  assertMatch(page, /no requests/);
  assertStringIncludes(page, "Failed in 90 s", "the window of the breaker");
});

Deno.test("only an operator tests targets, with a token, and only those of the catalog", async () => {
  await using host = startUpstream(() => ANSWER);
  await using gateway = startGateway(fileOf([host.url]), OPTIONS);
  const form = { model: "acme/one", target: "0" };
  const viewer = await signedIn(gateway, VIEWER_KEY);
  assert(!/<form[^>]*action="\/admin\/console\/models"/.test((await viewer.get("/models")).html));
  assertEquals((await viewer.post("/models", form)).status, 403);
  const browser = await signedIn(gateway);
  assertEquals((await browser.post("/models", { ...form, csrf: "" })).status, 403);
  assertEquals((await browser.post("/models", form, { origin: "https://evil.example" })).status, 403);
  for (const wrong of [{ target: "1" }, { target: "-1" }, { target: "" }, { target: "x" }, { model: "<script>" }]) {
    const { status, html } = await browser.post("/models", { ...form, ...wrong });
    assertEquals([status, html.includes("<script>")], [404, false], JSON.stringify(wrong));
  }
  const image = await browser.post("/models", { model: "sluice/canvas", target: "0" });
  assertEquals(image.status, 400);
  assertStringIncludes(image.html, "each image is billed");
  assertEquals(host.requests.length, 0);
});

Deno.test("every embedded model but that of images can be tested", async () => {
  await using gateway = startGateway({ admin: { key: { env: "ADMIN_KEY" } } }, OPTIONS);
  const browser = await signedIn(gateway);
  for (const model of ["sluice/echo", "sluice/embed", "sluice/rerank"]) {
    const { html } = await browser.post("/models", { model, target: "0" });
    assertStringIncludes(html, "The target answered.", model);
  }
});
