import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { formatUsd } from "../../lib/billing/money.ts";
import type { KeyRules } from "../../lib/config.ts";
import { ADMIN_KEY, VIEWER_KEY } from "../support/keyed_gateway.ts";
import { startGateway } from "../support/gateway.ts";
import { postChat } from "../support/post_chat.ts";
import { signedIn, startConsole } from "./browser.ts";
import { plainModel } from "../support/plain_model.ts";

/** A model with prices. */
const PRICED = plainModel({ id: "acme/echo", pricing: { prompt: "0.001", completion: "0.002" } });

const BODY = { model: "acme/echo", max_tokens: 16, messages: [{ role: "user", content: "one two" }] };

/** The value of a field of the form that changes a key. */
function valueOf(html: string, name: string): string | undefined {
  const tag = new RegExp(`<input[^>]* name="${name}"[^>]*>|<input name="${name}"[^>]*>`).exec(html)?.[0] ?? "";
  return / value="([^"]*)"/.exec(tag)?.[1];
}

Deno.test("a form keeps lists that permit nothing, and limits that only replace those of the group", async () => {
  await using gateway = startConsole();
  const browser = await signedIn(gateway);
  const rules = { models: [], endpoints: [], ips: ["10.0.0.0/8"], limits: { report_only: false } };
  const { id } = await gateway.addKey({ rules });
  const path = `/keys/${id}`;
  const { html } = await browser.get(path);
  const form = Object.fromEntries(["models", "endpoints", "ips"].map((name) => [name, valueOf(html, name) ?? ""]));
  assertEquals(form, { models: "none", endpoints: "none", ips: "10.0.0.0/8" });
  await browser.post(path, { ...form, action: "change", group: "poor" });
  const changed = await gateway.store.keys.find(id);
  assertEquals([changed?.group, changed?.rules], ["poor", rules]);
  await browser.post(path, { ...form, action: "change", models: "" });
  assertEquals((await gateway.store.keys.find(id))?.rules.models, undefined);
});

Deno.test("a form changes group, rules, budget and expiry of a key, and keeps what it does not name", async () => {
  await using gateway = startConsole();
  const browser = await signedIn(gateway);
  const { id } = await gateway.addKey({ rules: { models: ["sluice/*"] } });
  const path = `/keys/${id}`;
  const { id: plain } = await gateway.addKey();
  assertStringIncludes((await browser.get(`/keys/${plain}`)).html, "None of its own: those of its group apply.");
  const form = {
    action: "change",
    group: "poor",
    models: "sluice/*, acme/one",
    endpoints: "chat models",
    ips: "10.0.0.0/8",
    requests_per_minute: "7",
    tokens_per_minute: "",
    concurrency: "2",
    report_only: "on",
    budget_usd: "1.5",
    budget_period: "week",
    expires_at: "30d",
  };
  assertEquals((await browser.post(path, form)).path, path);
  const changed = await gateway.store.keys.find(id);
  assertEquals(changed?.group, "poor");
  assertEquals(changed?.rules, {
    models: ["sluice/*", "acme/one"],
    endpoints: ["chat", "models"],
    ips: ["10.0.0.0/8"],
    limits: { requests_per_minute: 7, concurrency: 2, report_only: true },
    budget: { usd: "1.5", period: "week" },
  });
  assert(Math.abs((changed?.expiresAt ?? 0) - Date.now() - 30 * 86_400_000) < 60_000);

  const { html } = await browser.get(path);
  const shown = ["models", "endpoints", "ips", "requests_per_minute", "tokens_per_minute", "budget_usd"];
  assertEquals(shown.map((name) => valueOf(html, name)), [
    "sluice/*, acme/one",
    "chat, models",
    "10.0.0.0/8",
    "7",
    "",
    "1.5",
  ]);
  const expires_at = valueOf(html, "expires_at") ?? "";
  await browser.post(path, { ...form, group: "poor", expires_at });
  assertEquals(await gateway.store.keys.find(id), changed, "the same form again changes nothing");
  const emptied = {
    ...form,
    models: "",
    endpoints: "",
    ips: "",
    requests_per_minute: "",
    concurrency: "",
    budget_usd: "",
  };
  await browser.post(path, { ...emptied, expires_at: "" });
  const last = await gateway.store.keys.find(id);
  assertEquals([last?.rules, last?.expiresAt], [{}, undefined]);

  const actions = (await gateway.store.operators.changes({ limit: 9 })).map(({ action, before }) => [action, before]);
  assertEquals(actions.filter(([action]) => action === "change_key").length, 2, "no entry where nothing changes");
});

/** The fields of the form that changes a key, as a browser would send them untouched. */
function changeFormOf(html: string): Record<string, string> {
  const [form = ""] = html.split("<form").filter((form) => form.includes('name="action" value="change"'));
  const fields: Record<string, string> = {};
  for (const [tag] of form.matchAll(/<input[^>]*>/g)) {
    const valueIn = (name: string) => new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1];
    if (!tag.includes('type="checkbox"') || / checked/.test(tag)) {
      fields[valueIn("name") ?? ""] = valueIn("value") ?? "on";
    }
  }
  for (const [, name = "", options = ""] of form.matchAll(/<select name="([^"]*)">(.*?)<\/select>/g)) {
    fields[name] =
      /<option(?=[^>]* selected)[^>]* value="([^"]*)"|<option value="([^"]*)" selected/.exec(options)?.slice(1)
        .find((value) => value !== undefined) ?? "";
  }
  return fields;
}

Deno.test("a form of an outdated page neither undoes a change nor invalidates the current secret", async () => {
  await using gateway = startConsole();
  const browser = await signedIn(gateway);
  const { id } = await gateway.addKey();
  const path = `/keys/${id}`;
  const version = (valueOf((await browser.get(path)).html, "version") ?? "").replaceAll("&quot;", '"');
  const rotate = { action: "rotate", overlap: "1h", version };
  assertEquals((await browser.post(path, rotate)).status, 200);
  for (const form of [rotate, { action: "change", requests_per_minute: "5", version }]) {
    const { status, html } = await browser.post(path, form);
    assertEquals(status, 400);
    assertStringIncludes(html, "The key was changed since this page was loaded");
  }
  assertEquals((await gateway.store.operators.changes({ limit: 9 })).filter(({ subject }) => subject === id).length, 1);
  assertEquals((await browser.post(path, { action: "disable", version })).path, path);
});

Deno.test("of two forms that are sent at the same moment, one changes the key and the other is refused", async () => {
  await using gateway = startConsole();
  const browser = await signedIn(gateway);
  const { id } = await gateway.addKey();
  const path = `/keys/${id}`;
  const version = (valueOf((await browser.get(path)).html, "version") ?? "").replaceAll("&quot;", '"');
  const { keys } = gateway.store;
  const { change } = keys;
  // Another node changes the key after the version of the form was checked.
  keys.change = async (...args) => {
    keys.change = change;
    await change(id, { rules: { models: ["acme/*"] } });
    return await change(...args);
  };
  const { status, html } = await browser.post(path, { action: "change", requests_per_minute: "5", version });
  assertEquals(status, 400);
  assertStringIncludes(html, "it was changed in the meantime");
  assertEquals((await keys.find(id))?.rules, { models: ["acme/*"] });
});

Deno.test("an untouched form leaves every rule of a key as it is", async () => {
  await using gateway = startConsole();
  const browser = await signedIn(gateway);
  const rules: Required<KeyRules> = {
    models: ["sluice/*"],
    endpoints: ["chat"],
    ips: ["10.0.0.0/8"],
    limits: { requests_per_minute: 7, tokens_per_minute: 9, concurrency: 2, report_only: true },
    budget: { usd: "1.5", period: "week" },
    user_budget: { usd: "0.5", period: "day", require_user: true },
  };
  const { id } = await gateway.addKey({ rules });
  const { csrf: _, version: __, ...fields } = changeFormOf((await browser.get(`/keys/${id}`)).html);
  await browser.post(`/keys/${id}`, { ...fields, group: "poor" });
  const changed = await gateway.store.keys.find(id);
  assertEquals([changed?.group, changed?.rules], ["poor", rules]);
});

Deno.test("an invalid key form shows its error, and changes nothing", async () => {
  await using gateway = startConsole();
  const browser = await signedIn(gateway);
  const { id } = await gateway.addKey();
  const before = await gateway.store.keys.find(id);
  const cases: [fields: Record<string, string>, text: string][] = [
    [{ group: "nobody" }, "unknown group"],
    [{ requests_per_minute: "many" }, "limits.requests_per_minute"],
    [{ budget_usd: "-1" }, "budget.usd"],
    [{ budget_usd: "1", budget_period: "hour" }, "budget.period"],
    [{ endpoints: "nothing" }, "endpoints"],
    [{ ips: "<script>" }, "ips"],
    [{ expires_at: "2001-01-01" }, "must be in the future"],
    [{ expires_at: "soon" }, "soon"],
  ];
  for (const [fields, text] of cases) {
    const { status, html } = await browser.post(`/keys/${id}`, { action: "change", group: "default", ...fields });
    assertEquals(status, 400, text);
    assertStringIncludes(html, text);
    assert(!html.includes("<script>"));
  }
  assertEquals(await gateway.store.keys.find(id), before);
});

Deno.test("a key can be made with rules, a budget and an expiry", async () => {
  await using gateway = startConsole();
  const browser = await signedIn(gateway);
  const fields = { name: "ci", group: "default", requests_per_minute: "5", budget_usd: "2", budget_period: "day" };
  assertStringIncludes((await browser.post("/keys", { ...fields, expires_at: "90d" })).html, '<pre id="secret">');
  const { rules } = await gateway.store.keys.find("ci") ?? {};
  assertEquals(rules, {
    limits: { requests_per_minute: 5, report_only: false },
    budget: { usd: "2", period: "day" },
  });
});

Deno.test("the page of a key shows how much of each limit is used now, and the requests of the key", async () => {
  await using gateway = startGateway({
    admin: { key: { env: "ADMIN_KEY" }, viewer_key: { env: "VIEWER_KEY" } },
    models: [PRICED],
    groups: { default: { limits: { tokens_per_minute: 1_000 }, budget: { usd: "9" } } },
  }, { adminKey: ADMIN_KEY, viewerKey: VIEWER_KEY, now: Date.now });
  const key = await gateway.addKey({
    rules: {
      limits: { requests_per_minute: 5, concurrency: 3, report_only: false },
      budget: { usd: "1", period: "day" },
    },
  });
  for (let count = 0; count < 2; count++) await (await gateway.ask("chat", BODY, { key })).body?.cancel();
  await gateway.gateway.ledger.flush();
  const browser = await signedIn(gateway, VIEWER_KEY);
  const { html } = await browser.get(`/keys/${key.id}`);
  assertMatch(html, /this key<\/td><td[^>]*>Requests in 60 s<\/td>.*?title="5".*?title="2".*?40%/);
  assertMatch(html, /this key<\/td><td[^>]*>Concurrent requests<\/td>.*?title="3".*?title="0"/);
  assertMatch(html, /group default<\/td><td[^>]*>Tokens in 60 s<\/td>.*?title="1,000"/);
  assertStringIncludes(html, `/admin/console/requests?key=${key.id}`);
  assert(!html.includes('name="action"'), "a viewer gets no form");

  const group = (await browser.get("/groups/default")).html;
  const { data } = await (await fetch(`${gateway.adminUrl}/admin/v1/budgets`, {
    headers: { authorization: `Bearer ${VIEWER_KEY}` },
  })).json();
  const spent = data.find(({ scope }: { scope: string }) => scope === "group").spent_usd;
  assert(spent !== "0" && spent !== formatUsd(0n));
  assertStringIncludes(group, `title="${spent} USD"`);
  assertStringIncludes(group, `/admin/console/keys/${key.id}"`);
  assertStringIncludes(group, "<code>groups.default</code>");
  assertMatch(group, /group default<\/td><td[^>]*>Tokens in 60 s/);
});

Deno.test("groups are listed with members, limits and budgets, and are changed in the configuration alone", async () => {
  await using gateway = startConsole({
    keys: [{ name: "env", key: { env: "UPSTREAM_KEY" }, group: "poor", budget: { usd: "7", period: "month" } }],
  });
  const viewer = await signedIn(gateway, VIEWER_KEY);
  const { html } = await viewer.get("/groups");
  for (const name of ["default", "poor", "speechless"]) assertStringIncludes(html, `/groups/${name}">${name}</a>`);
  assertMatch(html, /groups\/poor">poor<\/a><\/td><td[^>]*><span title="2">/, "one of the store and one of the file");
  assertStringIncludes(html, "Groups are set in the configuration");
  assertMatch(
    (await viewer.get("/groups/poor")).html,
    />env<\/a><\/td><td[^>]*>in the configuration<\/td>.{0,120}title="7 USD"/,
    "a key of the file, with its budget",
  );
  const missing = await viewer.get("/groups/%3Cimg%20src=x%3E");
  assertEquals(missing.status, 404);
  assert(!missing.html.includes("<img"));
  const admin = await signedIn(gateway);
  assertEquals((await admin.post("/groups/poor", { price_factor: "0" })).status, 405);
});

Deno.test("the page of budgets lists end users, filters, and links to their requests", async () => {
  await using gateway = startGateway({
    admin: { key: { env: "ADMIN_KEY" }, viewer_key: { env: "VIEWER_KEY" } },
    models: [PRICED],
    groups: {
      default: { user_budget: { usd: "9", period: "month" }, budget: { usd: "99" } },
      idle: { limits: { requests_per_minute: 6, report_only: true } },
      open: { models: [], limits: {} },
    },
  }, { adminKey: ADMIN_KEY, viewerKey: VIEWER_KEY, now: Date.now });
  const key = await gateway.addKey({ rules: { budget: { usd: "5", period: "total" } } });
  const { name } = (await gateway.store.keys.find(key.id)) ?? {};
  const groups = (await (await signedIn(gateway, VIEWER_KEY)).get("/groups")).html;
  assertStringIncludes(groups, "6 requests/min (reported only)");
  assertMatch(groups, />open<\/a>.*?<td[^>]*>none<\/td><td[^>]*>1<\/td><td[^>]*>none<\/td>/);
  const hostile = '<b>&"eve';
  for (const user of ["anna", hostile, ""]) {
    await (await gateway.ask("chat", { ...BODY, user }, { key })).body?.cancel();
  }
  await gateway.gateway.ledger.flush();
  const browser = await signedIn(gateway, VIEWER_KEY);
  const owners = (html: string) =>
    [...html.matchAll(/<tr[^>]*><td[^>]*>(?:<a href="([^"]*)">)?([^<]*)/g)].map(([, href, name = ""]) => ({
      href,
      name,
    }));
  const all = owners((await browser.get("/budgets")).html);
  assertEquals(
    all.map(({ name }) => name).toSorted(),
    [
      ...["group default", `key ${name}`, `end user anna of key ${name}`],
      `end user &lt;b>&amp;&quot;eve of key ${name}`,
      `requests without an end user of key ${name}`,
    ].toSorted(),
  );
  assertEquals(all.find(({ name }) => name.startsWith("requests without"))?.href, undefined);
  for (const { href, name } of all.filter(({ href }) => href !== undefined)) {
    const { html } = await browser.get(href?.replaceAll("&amp;", "&").replace("/admin/console", ""));
    const rows = [...html.matchAll(/\/requests\/req_/g)].length;
    assertEquals(rows, name.startsWith("end user") ? 1 : 3, name);
  }
  const found = async (query: string) => owners((await browser.get(`/budgets?${query}`)).html).map(({ name }) => name);
  assertEquals(await found("scope=group&group=&key="), ["group default"]);
  assertEquals(await found(`key=${name}&user=anna`), [`end user anna of key ${name}`]);
  assertEquals((await found("scope=user&limit=2")).length, 2);
  assertStringIncludes((await browser.get("/budgets?group=idle")).html, "No budgets match.");
  for (const [query, text] of [["user=anna", "Expected the key"], ["limit=x", "Cannot read limit"]] as const) {
    const { status, html } = await browser.get(`/budgets?${query}`);
    assertEquals(status, 400);
    assertStringIncludes(html, text);
  }
});

Deno.test("the list of keys shows the cost of this month, with and without a budget", async () => {
  await using gateway = startConsole({ models: [PRICED] });
  const spender = await gateway.addKey();
  await gateway.addKey({ rules: { budget: { usd: "2", period: "month" } } });
  const { usage } = await (await postChat(gateway.url, spender.key, BODY)).json();
  const cost = usage.prompt_tokens * 0.001 + usage.completion_tokens * 0.002;
  const { html } = await (await signedIn(gateway)).get("/keys");
  const amounts = [...html.matchAll(/<tr[^>]*>(.*?)<\/tr>/gs)].slice(1, 3).map(([, row = ""]) =>
    [...row.matchAll(/<td[^>]*>(?:<[^>]*>)*([^<]*)/g)].map(([, text]) => text).slice(3, 6)
  );
  assertEquals(amounts, [["$0", "$2.00", "$0"], [`$${cost.toFixed(4)}`, "none", "–"]]);
});
