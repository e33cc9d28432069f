import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { parseConfig } from "../../lib/config/parse.ts";
import { configDifferences } from "../../lib/admin/config_differences.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { ADMIN_KEY, VIEWER_KEY } from "../support/keyed_gateway.ts";
import { Browser, startConsole } from "../console/browser.ts";
import { ask, errorOf } from "./admin_client.ts";
import { plainModel } from "../support/plain_model.ts";

Deno.test("each change of a key is logged with operator, time, address and members, for the admin API and the console", async () => {
  await using gateway = startConsole({ trusted_proxies: ["127.0.0.0/8"] });
  const from = { "x-forwarded-for": "192.0.2.7" };
  const { key, id } = (await ask(gateway, "POST /keys", { name: "ci" }, from)).body;
  assertEquals((await ask(gateway, "PATCH /keys/ci", { disabled: true, group: "nobody" }, from)).status, 400);
  await ask(gateway, "PATCH /keys/ci", { rules: { models: ["acme/*"] }, disabled: true }, from);
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  const rotated = (await browser.post(`/keys/${id}`, { action: "rotate", overlap: "0s" })).html;
  await browser.post(`/keys/${id}`, { action: "revoke", confirm: "ci" });
  await browser.post("/sign-out", {});
  const { body } = await ask(gateway, "GET /changes");
  const data = (body.data as JsonObject[]).toReversed();
  assertEquals(data.map(({ author, action, address }) => [author, action, address]), [
    ["admin_key", "create_key", "192.0.2.7"],
    ["admin_key", "change_key", "192.0.2.7"],
    ["admin_key", "sign_in", "127.0.0.1"],
    ["admin_key", "rotate_key", "127.0.0.1"],
    ["admin_key", "revoke_key", "127.0.0.1"],
    ["admin_key", "sign_out", "127.0.0.1"],
  ]);
  const [created, changed] = data;
  assertEquals([created?.subject, created?.before], [id, null]);
  assertEquals([changed?.before, changed?.after], [
    { disabled: false, rules: {} },
    { disabled: true, rules: { models: ["acme/*"] }, name: "ci" },
  ]);
  assert(Math.abs(Date.parse(String(changed?.at)) - Date.now()) < 60_000);
  assert(String(created?.request_id).startsWith("req_"));

  await browser.signIn(VIEWER_KEY);
  const { html } = await browser.get("/changes");
  assertStringIncludes(html, "viewer key");
  const secret = /<pre id="secret">([^<]+)/.exec(rotated)?.[1] ?? "";
  assertEquals(secret.startsWith("sk-sluice-"), true);
  const text = html + JSON.stringify(body);
  for (const hidden of [String(key), secret, ADMIN_KEY, VIEWER_KEY]) assert(!text.includes(hidden));
});

Deno.test("the change log is read page by page, by the admin API and the console", async () => {
  await using gateway = startConsole();
  for (let at = 1; at <= 60; at++) {
    await gateway.store.operators.logChange({ author: "gateway", at, action: "sign_in", subject: `number ${at}` });
  }
  await gateway.store.operators.logChange({
    author: "gateway",
    at: 61,
    action: "change_key",
    subject: "<script>alert(1)</script>",
    before: { "<img src=x>": "<script>1" },
    after: { "<img src=x>": "<script>2", name: "<script>alert(1)</script>" },
  });
  const subjects: unknown[] = [];
  let query = "?limit=25";
  for (let pages = 1;; pages++) {
    const { body } = await ask(gateway, `GET /changes${query}`);
    subjects.push(...(body.data as JsonObject[]).map(({ subject }) => subject));
    if (body.next === null) {
      assertEquals(pages, 3);
      break;
    }
    query = `?limit=25&cursor=${body.next}`;
  }
  assertEquals(subjects.slice(1), Array.from({ length: 60 }, (_, index) => `number ${60 - index}`));
  const browser = new Browser(gateway);
  await browser.signIn(VIEWER_KEY);
  const first = (await browser.get("/changes")).html;
  assert(!first.includes(">number 9<"));
  assertStringIncludes(first, "&lt;script>alert(1)");
  assert(!/<script>|<img/.test(first));
  const [, next = ""] = /href="\/admin\/console(\/changes\?cursor=\d+)"/.exec(first) ?? [];
  assertStringIncludes((await browser.get(next)).html, "<td >number 9</td>");
  assertEquals((await browser.get("/changes?cursor=x")).status, 400);
  const cases: [string, string, string][] = [
    ["limit=0", "limit", "a whole number from 1 to 1000"],
    ["limit=1001", "limit", "a whole number from 1 to 1000"],
    ["cursor=-1", "cursor", 'the "next" of the page before'],
    ["since=1d", "since", "known here: limit, cursor"],
  ];
  for (const [text, param, message] of cases) {
    const [status, at, found] = errorOf(await ask(gateway, `GET /changes?${text}`));
    assertEquals([status, at], [400, param]);
    assertStringIncludes(found, message);
  }
});

Deno.test("configDifferences() names changed members, with rows by id, and no secrets", () => {
  const env = (name: string) => `secret-value-of-${name}`;
  const model = (id: string, prompt: string) =>
    plainModel({ id, pricing: { prompt, completion: "0" }, targets: [{ upstream: "host", model: "m" }] });
  const config = (models: JsonObject[], more: JsonObject = {}) =>
    parseConfig({
      upstreams: { host: { vendor: "openai-compatible", base_url: "http://127.0.0.1:9/v1", api_key: { env: "UP" } } },
      models,
      ...more,
    }, env);
  const first = config([model("a/a", "0"), model("a/b", "0")]);
  assertEquals(configDifferences(first, first), []);
  const second = config([model("a/b", "0.5"), model("a/a", "0")], {
    groups: { team: { limits: { requests_per_minute: 5 } } },
    admin: { key: { env: "ADMIN_KEY" } },
  });
  const found = configDifferences(first, second);
  const paths = found.map(({ path }) => path).filter((path) => !path.includes("input_cache"));
  assertEquals(paths, ["models.a/b.pricing.prompt", "groups.team", "admin"]);
  assertEquals(found[0], { path: "models.a/b.pricing.prompt", before: "0", after: "0.5" });
  assertEquals(Object.keys(found.find(({ path }) => path === "groups.team") ?? {}), ["path", "after"]);
  assert(!JSON.stringify(found).includes("secret-value"));
});
