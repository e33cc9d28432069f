import { assert, assertEquals, assertMatch, assertNotMatch, assertStringIncludes } from "@std/assert";
import { formatUsd } from "../../lib/billing/money.ts";
import { CLIENT_CODECS } from "../../lib/protocols/client_codecs.ts";
import { type KeyedGateway, VIEWER_KEY } from "../support/keyed_gateway.ts";
import { plainUpstream } from "../support/plain_model.ts";
import { type Browser, csrfOf, signedIn, startConsole } from "./browser.ts";

/** The embedded model repeats it. */
const HOSTILE = "one </pre><script>alert(1)</script> three";

function row(id: string, targets: { upstream: string; model: string }[]) {
  return {
    id,
    created: 0,
    context_length: 10_000,
    pricing: { prompt: "0.001", completion: "0.002" },
    supported_parameters: ["max_tokens", "tools"],
    targets,
  };
}

const CONFIG = {
  upstreams: { claude: { vendor: "anthropic", base_url: "http://127.0.0.1:9", api_key: { env: "UPSTREAM_KEY" } } },
  models: [
    row("acme/echo", [{ upstream: "embedded", model: "echo" }]),
    row("acme/claude", [{ upstream: "claude", model: "claude-one" }]),
    row("acme/second", [{ upstream: "embedded", model: "echo" }]),
  ],
};

const ASKED = { key: "good", endpoint: "chat", model: "acme/echo", prompt: HOSTILE, max_tokens: "50" };

/** Sends the form as the page's script does. Returns its lines by side. */
async function stream(gateway: KeyedGateway, browser: Browser, fields: Record<string, string>) {
  const csrf = csrfOf((await browser.get("/playground")).html);
  const response = await fetch(`${gateway.adminUrl}/admin/console/playground`, {
    method: "POST",
    headers: { accept: "application/x-ndjson", origin: gateway.adminUrl, cookie: browser.cookie },
    body: new URLSearchParams({ csrf, ...fields }),
  });
  assertEquals(response.headers.get("content-type"), "application/x-ndjson");
  const lines = (await response.text()).trimEnd().split("\n").map((line) => JSON.parse(line));
  return {
    text: (side: number) => lines.filter(({ side: of }) => of === side).map(({ text = "" }) => text).join(""),
    panel: (side: number): string => lines.find(({ side: of, html }) => of === side && html !== undefined)?.html ?? "",
  };
}

Deno.test("a request of the playground is an ordinary one: of the key, billed to it, in the ledger and the log", async () => {
  await using gateway = startConsole(CONFIG);
  const browser = await signedIn(gateway);
  const { status, html } = await browser.post("/playground", ASKED);
  assertEquals(status, 200);
  assertStringIncludes(html, "one &lt;/pre>&lt;script>alert(1)&lt;/script> three</pre>");
  const [entry] = await gateway.store.ledger.entries({ after: 0, limit: 10 });
  assert(entry !== undefined);
  assertEquals([entry.keyId, entry.model, entry.status, entry.endpoint], [gateway.key.id, "acme/echo", 200, "chat"]);
  assertEquals(entry.details?.tags, ["playground"]);
  assertStringIncludes(html, `title="${formatUsd(entry.cost)} USD"`);
  assertStringIncludes(html, `/admin/console/requests/req_${entry.id}`);
  assertEquals(
    gateway.requestLines.filter(({ route }) => route === "/v1/chat/completions").map(({ key_name }) => key_name),
    ["good"],
  );
  const [change] = await gateway.store.operators.changes({ limit: 1 });
  assertEquals([change?.action, change?.author, change?.address, change?.requestId, change?.after], [
    "send_playground_request",
    "admin_key",
    "127.0.0.1",
    entry.id,
    { key: "good", endpoint: "chat", model: "acme/echo", request_id: `req_${entry.id}` },
  ]);
  const page = (await browser.get(`/requests/req_${entry.id}`)).html;
  assertStringIncludes(page, `<a href="/admin/console/changes?request=req_${entry.id}">admin key from 127.0.0.1</a>`);
  const { html: listed } = await browser.get(`/changes?request=req_${entry.id}`);
  assertStringIncludes(listed, "send playground request");
  assertNotMatch(listed, /<td>sign in<\/td>/);
  assert(
    !Deno.inspect([gateway.logs, gateway.requestLines, entry, change], { depth: 9, strAbbreviateSize: Infinity })
      .includes(
        "alert(1)",
      ),
    "no prompt is kept",
  );
});

for (const endpoint of Object.keys(CLIENT_CODECS)) {
  Deno.test(`the playground streams two ${endpoint} answers side by side`, async () => {
    await using gateway = startConsole(CONFIG);
    const browser = await signedIn(gateway);
    const { text, panel } = await stream(gateway, browser, { ...ASKED, endpoint, other: "acme/second" });
    for (const side of [0, 1]) {
      assertEquals(text(side), HOSTILE);
      assertMatch(panel(side), /First token<\/dt><dd><span title="[\d,]+ ms">/);
      assertStringIncludes(panel(side), "The embedded model answers in this process");
    }
    assertStringIncludes(panel(1), "<h2>acme/second</h2>");
    assertNotMatch(panel(1), /<script/);
    assertEquals((await gateway.store.ledger.entries({ after: 0, limit: 10 })).length, 2);
  });
}

for (const endpoint of Object.keys(CLIENT_CODECS)) {
  Deno.test(`the playground shows calls of tools over ${endpoint}, whole and streamed`, async () => {
    await using gateway = startConsole();
    const browser = await signedIn(gateway);
    const tools =
      '[{"name": "get_time", "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}}}]';
    const fields = { ...ASKED, endpoint, model: "sluice/echo", tools, prompt: 'call:get_time {"zone": "<b>UTC</b>"}' };
    const shown = /<pre tabindex="0">get_time\(\{&quot;zone&quot;: ?&quot;&lt;b>UTC&lt;\/b>&quot;\}\)<\/pre>/;
    assertMatch((await browser.post("/playground", fields)).html, shown);
    assertMatch((await stream(gateway, browser, fields)).panel(0), shown);
  });
}

Deno.test("the playground shows the body for the upstream, what it drops, and the request as code, without sending", async () => {
  await using gateway = startConsole(CONFIG);
  const browser = await signedIn(gateway);
  const { html } = await browser.post("/playground", {
    ...ASKED,
    model: "acme/claude",
    action: "show",
    tools: '[{"name": "clock", "parameters": {"type": "object", "properties": {}}}]',
    more: '{"logit_bias": {"1": 2}}',
  });
  assertStringIncludes(html, "Upstream claude, in its protocol messages:");
  assertStringIncludes(html, "&quot;model&quot;: &quot;claude-one&quot;");
  assertStringIncludes(html, "&quot;input_schema&quot;");
  assertStringIncludes(html, "Dropped: logit_bias");
  for (const name of ["curl", "OpenAI, JavaScript", "OpenAI, Python"]) assertStringIncludes(html, `<summary>${name}<`);
  assertStringIncludes(html, "extra_body={");
  assertNotMatch(html, /sk-sluice-|upstream-key/);
  assertEquals(await gateway.store.ledger.lastSeq(), 0);
});

Deno.test("the playground writes Gemini's requests: the model in the path, functions together, generationConfig joined", async () => {
  await using gateway = startConsole({
    upstreams: {
      ...CONFIG.upstreams,
      google: { vendor: "gemini", base_url: "http://127.0.0.1:9", api_key: { env: "UPSTREAM_KEY" } },
    },
    models: [...CONFIG.models, row("acme/flash", [{ upstream: "google", model: "flash-one" }])],
  });
  const browser = await signedIn(gateway);
  const fields = {
    ...ASKED,
    endpoint: "gemini",
    action: "show",
    system: "Be brief.",
    tools: '[{"name": "clock"}, {"googleSearch": {}}, {"name": "bell"}]',
    more: '{"generationConfig": {"temperature": 0}}',
  };
  const { html } = await browser.post("/playground", { ...fields, model: "acme/flash" });
  const shown = html.replaceAll("&quot;", '"').replaceAll(/\s+/g, " ");
  assertStringIncludes(shown, "the body passes. The path has the upstream's model id: /v1beta/models/flash-one:gen");
  assertStringIncludes(shown, `curl ${gateway.url}/v1beta/models/acme/flash:generateContent`);
  assertStringIncludes(shown, "x-goog-api-key: $SLUICE_API_KEY");
  assertStringIncludes(shown, '"generationConfig": { "maxOutputTokens": 50, "temperature": 0 }');
  assertStringIncludes(
    shown,
    '"tools": [ { "functionDeclarations": [ { "name": "clock" }, { "name": "bell" } ] }, { "googleSearch": {} } ]',
  );
  for (const name of ["curl", "Google, JavaScript", "Google, Python"]) assertStringIncludes(html, `<summary>${name}<`);
  assertMatch(shown, /generateContent\(\{ "model": "acme\/flash", "contents": .*"config": \{ "maxOutputTokens": 50/);
  assertMatch(shown, /generate_content\( model="acme\/flash", contents=.*config=\{ "maxOutputTokens": 50/);
  const { html: translated } = await browser.post("/playground", { ...fields, model: "acme/claude" });
  assertStringIncludes(translated, "Upstream claude, in its protocol messages:");
});

Deno.test("the playground sends images, embeddings and documents to rerank", async () => {
  await using gateway = startConsole();
  const browser = await signedIn(gateway);
  const send = async (fields: Record<string, string>) => {
    const { status, html, headers } = await browser.post("/playground", { key: "good", ...fields });
    assertEquals(status, 200);
    return { html, headers };
  };
  const image = await send({ endpoint: "images", model: "sluice/canvas", prompt: "stripes", size: "816x816" });
  assertStringIncludes(image.html, '<img src="data:image/png;base64,');
  assertStringIncludes(image.headers.get("content-security-policy") ?? "", "img-src 'self' data:;");
  const vectors = await send({ endpoint: "embeddings", model: "sluice/embed", prompt: "a lake\na meadow" });
  assertEquals(vectors.html.match(/\d+ dimensions: \[/g)?.length, 2);
  const ranked = await send({
    endpoint: "rerank",
    model: "sluice/rerank",
    prompt: "reset my password",
    documents: "Parcels arrive.\nReset your password.",
  });
  assertMatch(ranked.html, /<pre class="answer"[^>]*>[\d.]+ {2}document 2\n/);
  const wrong = await send({ endpoint: "embeddings", model: "sluice/canvas", prompt: "a lake" });
  assertMatch(wrong.html, /role="alert">[^<]*\/v1\/images\/generations/);
});

Deno.test("the playground respects the permissions of the key, and enters what it refuses", async () => {
  await using gateway = startConsole(CONFIG);
  const browser = await signedIn(gateway);
  const refused = await browser.post("/playground", { ...ASKED, key: "narrowed" });
  assertStringIncludes(refused.html, "may not use the endpoint &quot;chat&quot;");
  const [entry] = await gateway.store.ledger.entries({ after: 0, limit: 10 });
  assertEquals([entry?.status, entry?.details?.reason?.code], [403, "permission"]);
  const problems: [Record<string, string>, number][] = [
    [{ key: "revoked" }, 403],
    [{ key: "disabled" }, 403],
    [{ key: "expired" }, 401],
    [{ key: "unknown" }, 404],
    [{ model: "" }, 400],
    [{ endpoint: "files" }, 400],
    [{ tools: "{}" }, 400],
    [{ more: '{"model": "acme/claude"}' }, 400],
    [{ max_tokens: "many" }, 400],
  ];
  for (const [fields, status] of problems) {
    assertEquals((await browser.post("/playground", { ...ASKED, ...fields })).status, status, JSON.stringify(fields));
  }
  assertEquals(await gateway.store.ledger.lastSeq(), 1);
});

Deno.test("only an operator with the admin key can send from the playground, and only from the console itself", async () => {
  await using gateway = startConsole(CONFIG);
  const viewer = await signedIn(gateway, VIEWER_KEY);
  assertStringIncludes((await viewer.get("/playground")).html, "The viewer key sends no requests");
  assertEquals((await viewer.post("/playground", ASKED)).status, 403);
  const browser = await signedIn(gateway);
  assertEquals((await browser.post("/playground", { ...ASKED, csrf: "" })).status, 403);
  assertEquals((await browser.post("/playground", ASKED, { origin: "https://evil.example" })).status, 403);
  assertEquals(await gateway.store.ledger.lastSeq(), 0);
});

Deno.test("the playground works on an admin side with a listener of its own", async () => {
  const listen = { hostname: "127.0.0.1", port: 9 };
  await using gateway = startConsole({ ...CONFIG, admin: { key: { env: "ADMIN_KEY" }, listen } });
  const browser = await signedIn(gateway);
  assertMatch((await browser.post("/playground", ASKED)).html, /Status<\/dt><dd>200</);
});

Deno.test("the playground shows text before the answer is over, and an answer that breaks off", async () => {
  const seen = Promise.withResolvers<void>();
  const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "one" };
  const events = new TextEncoder().encode(
    `data: ${
      JSON.stringify({ ...chunk, choices: [{ index: 0, delta: { role: "assistant", content: "first " } }] })
    }\n\n`,
  );
  await using upstream = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => {
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        controller.enqueue(events);
        await seen.promise;
        controller.close();
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  });
  await using gateway = startConsole({
    upstreams: { one: plainUpstream(`http://127.0.0.1:${upstream.addr.port}`) },
    models: [row("acme/one", [{ upstream: "one", model: "one" }])],
  });
  const browser = await signedIn(gateway);
  const csrf = csrfOf((await browser.get("/playground")).html);
  const response = await fetch(`${gateway.adminUrl}/admin/console/playground`, {
    method: "POST",
    headers: { accept: "application/x-ndjson", origin: gateway.adminUrl, cookie: browser.cookie },
    body: new URLSearchParams({ csrf, ...ASKED, model: "acme/one" }),
  });
  assert(response.body !== null);
  let text = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    // The upstream continues only when the browser has received this.
    if (text.includes('"text":"first "')) seen.resolve();
  }
  const panel = JSON.parse(text.trimEnd().split("\n").at(-1) ?? "");
  assertMatch(panel.html, /role="alert">[^<]+<\/p><pre class="answer"[^>]*>first <\/pre>/);
});

Deno.test("an operator who leaves the playground gives the request up", async () => {
  const requested = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  await using slow = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    requested.resolve();
    request.signal.addEventListener("abort", () => gone.resolve());
    return gone.promise.then(() => new Response(null, { status: 500 }));
  });
  await using gateway = startConsole({
    upstreams: { slow: plainUpstream(`http://127.0.0.1:${slow.addr.port}`) },
    models: [row("acme/slow", [{ upstream: "slow", model: "one" }])],
  });
  const browser = await signedIn(gateway);
  const csrf = csrfOf((await browser.get("/playground")).html);
  const leaving = new AbortController();
  const response = await fetch(`${gateway.adminUrl}/admin/console/playground`, {
    method: "POST",
    headers: { accept: "application/x-ndjson", origin: gateway.adminUrl, cookie: browser.cookie },
    body: new URLSearchParams({ csrf, ...ASKED, model: "acme/slow" }),
    signal: leaving.signal,
  });
  await requested.promise;
  leaving.abort();
  await response.body?.cancel().catch(() => {});
  await gone.promise;
});
