import { assert, assertEquals, assertMatch, assertNotMatch, assertStringIncludes } from "@std/assert";
import { formatUsd } from "../../lib/billing/money.ts";
import { ADMIN_KEY, startKeyed, VIEWER_KEY } from "../support/keyed_gateway.ts";
import { Browser, startConsole } from "./browser.ts";
import { freeEntryOf } from "../billing/reports/entries.ts";
import { plainModel } from "../support/plain_model.ts";

const PAGES = [
  "",
  "/requests",
  "/keys",
  "/groups",
  "/groups/default",
  "/budgets",
  "/models",
  "/usage",
  "/node",
  "/configuration",
  "/changes",
];

Deno.test("the console shows its pages after signing in with the admin key", async () => {
  await using gateway = startConsole();
  const browser = new Browser(gateway);
  assertEquals((await browser.get()).path, "/sign-in");
  assertEquals((await browser.signIn(ADMIN_KEY)).path, "");
  for (const page of PAGES) {
    const { status, path, html, headers } = await browser.get(page);
    assertEquals([status, path], [200, page]);
    assertMatch(html, /^<!doctype html><html lang="en">/);
    assertEquals(headers.get("cache-control"), "no-store");
    assertStringIncludes(headers.get("content-security-policy") ?? "", "default-src 'none'");
    assertNotMatch(html, /<script(?![^>]* src=)|style="|\son\w+="/, "nothing is inline");
  }
  for (const name of ["console.css", "console.js", "icon.svg"]) {
    assertEquals((await browser.get(`/assets/${name}`)).status, 200);
  }
  assertEquals((await browser.get("/assets/other")).status, 404);
});

Deno.test("a wrong admin key does not sign in, and too many are throttled", async () => {
  await using gateway = startConsole({ trusted_proxies: ["127.0.0.0/8"] });
  const browser = new Browser(gateway);
  const address = { "x-forwarded-for": "192.0.2.7" };
  const wrong = await browser.post("/sign-in", { key: "wrong" }, address);
  assertEquals([wrong.status, browser.cookie], [401, ""]);
  assertStringIncludes(wrong.html, "This admin key is not valid");
  let status = 401;
  for (let attempt = 0; status === 401 && attempt < 30; attempt++) {
    ({ status } = await browser.post("/sign-in", { key: "wrong" }, address));
  }
  assertEquals(status, 429);
});

Deno.test("the session cookie is limited to the console, HttpOnly, and Secure behind TLS", async () => {
  await using gateway = startConsole();
  const signIn = (headers: Record<string, string>) =>
    fetch(`${gateway.adminUrl}/admin/console/sign-in`, {
      method: "POST",
      body: new URLSearchParams({ key: ADMIN_KEY }),
      headers: { origin: gateway.adminUrl, ...headers },
      redirect: "manual",
    });
  const plain = await signIn({});
  await plain.body?.cancel();
  const cookie = plain.headers.get("set-cookie") ?? "";
  for (const part of ["Path=/admin/console", "HttpOnly", "SameSite=Strict", "Max-Age=43200"]) {
    assertStringIncludes(cookie, part);
  }
  assert(!cookie.includes("Secure"));
  const secure = await signIn({ "x-forwarded-proto": "https" });
  await secure.body?.cancel();
  assertStringIncludes(secure.headers.get("set-cookie") ?? "", "; Secure");
});

Deno.test("an operator creates, disables, rotates and revokes a key", async () => {
  await using gateway = startConsole();
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  const statusOf = async (key: string) => {
    const response = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    await response.body?.cancel();
    return response.status;
  };
  const secretOf = (html: string) => /<pre id="secret">([^<]+)/.exec(html)?.[1] ?? "";
  const created = await browser.post("/keys", { name: "team", group: "default", expires_at: "90d" });
  const first = secretOf(created.html);
  assertEquals(await statusOf(first), 200);
  const path = /href="\/admin\/console(\/keys\/[^"]+)"/.exec(created.html)?.[1] ?? "";
  assertNotMatch((await browser.get(path)).html, /sk-sluice-/, "the secret is shown once");

  assertEquals((await browser.post(path, { action: "disable" })).path, path);
  assertEquals(await statusOf(first), 403);
  await browser.post(path, { action: "enable" });
  const second = secretOf((await browser.post(path, { action: "rotate", overlap: "0s" })).html);
  assertEquals([await statusOf(first), await statusOf(second)], [401, 200]);
  const unconfirmed = await browser.post(path, { action: "revoke", confirm: "other" });
  assertEquals([unconfirmed.status, await statusOf(second)], [400, 200]);
  await browser.post(path, { action: "revoke", confirm: "team" });
  assertEquals(await statusOf(second), 401);
  assertEquals(gateway.logs.filter(({ event }) => event === "key_changed").map(({ action }) => action), [
    "create_key",
    "change_key",
    "change_key",
    "rotate_key",
    "revoke_key",
  ]);
});

Deno.test("a viewer sees every page and changes nothing, in the console and the admin API", async () => {
  await using gateway = startConsole();
  const browser = new Browser(gateway);
  await browser.signIn(VIEWER_KEY);
  for (const page of PAGES) {
    const { status, html } = await browser.get(page);
    assertEquals(
      [status, /<form[^>]*action="(?!\/admin\/console\/(?:sign-out|usage|requests|budgets)")/.test(html)],
      [200, false],
      page,
    );
  }
  assertEquals((await browser.post("/keys", { name: "viewer", group: "default" })).status, 403);
  const api = (method: string) =>
    fetch(`${gateway.adminUrl}/admin/v1/keys`, {
      method,
      headers: { authorization: `Bearer ${VIEWER_KEY}`, "content-type": "application/json" },
      ...(method === "POST" && { body: '{"name":"viewer"}' }),
    });
  for (const [method, status] of [["GET", 200], ["POST", 403]] as const) {
    const response = await api(method);
    await response.body?.cancel();
    assertEquals(response.status, status, method);
  }
  assertEquals(await gateway.store.keys.find("viewer"), undefined);
  const { cookie } = browser;
  assertEquals((await browser.post("/sign-out", {})).path, "/sign-in");
  // The cookie is invalid now, including all copies of it.
  browser.cookie = cookie;
  assertEquals((await browser.get("/keys")).path, "/sign-in");
});

Deno.test("names that look like markup are escaped", async () => {
  await using gateway = startConsole({
    upstreams: { host: { vendor: "openai-compatible", base_url: "http://127.0.0.1:9/v1" } },
    models: [plainModel({ id: "evil/model", targets: [{ upstream: "host", model: "<script>alert(1)</script>" }] })],
  });
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  const { html } = await browser.get("/models");
  assertStringIncludes(html, "&lt;script>");
  assertNotMatch(html, /<script>alert/);
  assertStringIncludes((await browser.get("/keys/%3Cimg%20src=x%3E")).html, "&lt;img");
});

Deno.test("the console requires an admin side, and is not on the clients' listener if that is separate", async () => {
  await using none = startKeyed();
  await using apart = startConsole({
    admin: { key: { env: "ADMIN_KEY" }, listen: { hostname: "127.0.0.1", port: 9 } },
  });
  for (const origin of [none.url, apart.url]) {
    for (const path of ["", "/sign-in", "/assets/console.css"]) {
      const response = await fetch(`${origin}/admin/console${path}`, { redirect: "manual" });
      await response.body?.cancel();
      assertEquals(response.status, 404, `${origin}${path}`);
    }
  }
  assertEquals((await new Browser(apart).get("/sign-in")).status, 200);
});

Deno.test("a refused and a billed request are explained, and totals match the ledger", async () => {
  await using gateway = startConsole({
    models: [plainModel({ id: "acme/echo", pricing: { prompt: "0.001", completion: "0.002" } })],
  });
  const { id } = await gateway.addKey();
  const limited = await gateway.addKey({ rules: { limits: { requests_per_minute: 1, report_only: false } } });
  const body = { model: "acme/echo", max_tokens: 16, messages: [{ role: "user", content: "one two" }] };
  const ids: string[] = [];
  for (const status of [200, 429]) {
    const response = await gateway.ask("chat", body, { key: limited });
    await response.body?.cancel();
    assertEquals(response.status, status);
    ids.push(response.headers.get("x-request-id") ?? "");
  }
  await gateway.gateway.ledger.flush();
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  const [billed = "", refused = ""] = ids;
  const all = await browser.get("/requests");
  for (const id of ids) assertStringIncludes(all.html, `/admin/console/requests/${id}"`);
  const onlyRefused = await browser.get("/requests?status=429&reason=limit");
  assertStringIncludes(onlyRefused.html, refused);
  assert(!onlyRefused.html.includes(billed));
  assertEquals((await browser.get("/requests?status=many")).status, 400);
  assertStringIncludes((await browser.get(`/requests?key=${id}`)).html, "No requests match.");

  assertStringIncludes((await browser.get(`/requests/${refused}`)).html, "is limited to 1 request per minute");
  const entry = await gateway.store.ledger.find(billed.replace("req_", ""));
  const cost = formatUsd(entry?.cost ?? 0n);
  assertStringIncludes((await browser.get(`/requests/${billed}`)).html, `Charged</td><td class="number">${cost}</td>`);
  for (const page of ["", "/usage", `/keys/${limited.id}`]) {
    assertStringIncludes((await browser.get(page)).html, `title="${cost} USD"`, page);
  }
  assertEquals((await browser.get("/requests/req_none")).status, 404);
});

Deno.test("missing names are shown as dashes, and a lost request has neither time nor upstream", async () => {
  await using gateway = startConsole();
  await gateway.store.ledger.append([
    freeEntryOf({ id: "lost", at: Date.now(), ending: "lost", status: 0, upstream: "", attempts: 0, totalMs: 0 }),
    freeEntryOf({ id: "bad", at: Date.now(), ending: "refused", status: 400, model: "", upstream: "", attempts: 0 }),
  ]);
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  assertStringIncludes((await browser.get("/usage")).html, "<td >–</td>");
  const { html } = await browser.get("/requests/req_lost");
  assertStringIncludes(html, "Unknown: the process ended before the request did.");
  assert(!html.includes("0 ms"));
});

Deno.test("a page that fails by a mistake of the gateway is in the log, without its cause on the page", async () => {
  await using gateway = startConsole();
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  gateway.store.keys.page = () => Promise.reject(new TypeError("a mistake"));
  const { status, html } = await browser.get("/keys");
  assertEquals(status, 500);
  assertNotMatch(html, /a mistake/);
  const line = gateway.logs.find(({ event }) => event === "request_failed");
  assertEquals([line?.level, line?.kind, line?.cause], ["error", "internal", "TypeError"]);
});
