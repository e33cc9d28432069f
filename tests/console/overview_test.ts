import { assert, assertEquals, assertNotMatch, assertStringIncludes } from "@std/assert";
import { formatUsd } from "../../lib/billing/money.ts";
import { SERIES_BY } from "../../lib/billing/reports/time_series.ts";
import { entryOf, freeEntryOf } from "../billing/reports/entries.ts";
import { startGateway } from "../support/gateway.ts";
import { ADMIN_KEY } from "../support/keyed_gateway.ts";
import { Browser, startConsole } from "./browser.ts";

const PERIODS = ["1h", "24h", "7d", "30d", "90d", "1y"];

/** Paths of the links whose text or title contains this text. */
function linksTo(html: string, text: string): string[] {
  return [...html.matchAll(/<a href="\/admin\/console([^"]*)"[^>]*>(.*?)<\/a>/gs)]
    .filter(([whole]) => whole.includes(text)).map(([, path = ""]) => path.replaceAll("&amp;", "&"));
}

Deno.test("the overview shows the ledger's totals for every period and grouping", async () => {
  await using gateway = startConsole();
  const now = Date.now();
  const entries = [
    ...Array.from(
      { length: 12 },
      (_, index) => entryOf({ id: `r${index}`, at: now - 1000 - index, model: `acme/${index}`, upstream: "one" }),
    ),
    freeEntryOf({ id: "bad", at: now - 500, model: "", upstream: "" }),
  ];
  await gateway.store.ledger.append(entries);
  const cost = `${formatUsd(entries.reduce((sum, { cost }) => sum + cost, 0n))} USD`;
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  for (const period of PERIODS) {
    for (const by of SERIES_BY) {
      const { status, html } = await browser.get(`?period=${period}&by=${by}`);
      assertEquals(status, 200);
      assertStringIncludes(html, `title="${cost}"`, `${period} by ${by}`);
      assertStringIncludes(html, "All 13 requests of the period were read.");
      assertStringIncludes(html, "210\u00a0ms / 210\u00a0ms", "the first token");
      assertEquals(html.match(/<svg class="chart"/g)?.length, 6);
      assert(!html.includes("NaN"));
    }
  }
  const byModel = (await browser.get("?by=model")).html;
  assertStringIncludes(byModel, "all others");
  const legend = /<ul class="legend"[^>]*>(.*?)<\/ul>/s.exec(byModel.slice(0, byModel.indexOf('<svg class="chart"')))
    ?.[1];
  const named = new Map(
    [...(legend ?? "").matchAll(/<span class="swatch (\w+)"><\/span> ([^<]+)<\/li>/g)].map((
      [, color, name],
    ) => [color, name]),
  );
  const drawn = new Set([...byModel.matchAll(/<path class="part (\w+)"/g)].map(([, color]) => color));
  assertEquals(new Set(named.keys()), drawn, "every color has a name above the charts");
  assertEquals([new Set(named.values()).size, named.get("others")], [8, "all others"]);
  assertEquals((await browser.get("?period=never&by=chance")).status, 200);
});

Deno.test("the numbers of the overview link to their requests", async () => {
  await using gateway = startConsole();
  const at = Date.now() - 1000;
  const hostile = '"><script>alert(1)</script>&model=x';
  await gateway.store.ledger.append([
    entryOf({ id: "answered", at, model: hostile, upstream: hostile }),
    freeEntryOf({ id: "failed", at, model: hostile, upstream: hostile }),
    freeEntryOf({ id: "other", at, model: "acme/other", upstream: "other", ending: "refused", status: 429 }),
  ]);
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  const idsOf = (html: string) => [...html.matchAll(/title="req_(\w+)"/g)].map(([, id]) => id).sort();
  for (const by of ["model", "upstream"]) {
    const { html } = await browser.get(`?by=${by}&period=24h`);
    assertNotMatch(html, /<script>alert/);
    const own = linksTo(html, "USD").filter((path) => path.includes(`${by}=`) && path.includes("script"));
    assertEquals(own.length, 1);
    assertEquals(idsOf((await browser.get(own[0] ?? "")).html), ["answered", "failed"], by);
    const failed = linksTo(html, ">2<").filter((path) => path.includes("failed=true") && !path.includes("key="));
    // In the totals, and of the step.
    assertEquals(failed.length, 2);
    for (const path of failed) assertEquals(idsOf((await browser.get(path)).html), ["failed", "other"]);
    const bars = linksTo(html, " UTC: Requests 3<");
    assertEquals(bars.length, 1);
    assertEquals(linksTo(html, " UTC: Failed or refused 2<"), bars);
    assertEquals(idsOf((await browser.get(bars[0] ?? "")).html), ["answered", "failed", "other"]);
  }
});

Deno.test("the top spenders lead to their keys, those of the configuration to their requests", async () => {
  await using gateway = startConsole({ keys: [{ name: "web", key: { env: "UPSTREAM_KEY" } }] });
  const at = Date.now();
  await gateway.store.ledger.append([
    entryOf({ id: "one", at, keyId: "config:web" }),
    entryOf({ id: "two", at, keyId: gateway.key.id }),
  ]);
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  const { html } = await browser.get();
  for (const [name, shown] of [["web", "req_one"], ["good", "Key good"]] as const) {
    const [path = ""] = linksTo(html, `>${name}</a>`);
    const page = await browser.get(path);
    assertEquals(page.status, 200);
    assertStringIncludes(page.html, shown);
  }
});

Deno.test("a budget near its end leads to the requests of its period", async () => {
  await using gateway = startGateway({
    admin: { key: { env: "ADMIN_KEY" } },
    groups: { team: { budget: { usd: "0.0014", period: "month" } } },
  }, { adminKey: ADMIN_KEY, now: Date.now });
  const now = Date.now();
  await gateway.store.ledger.append([entryOf({ id: "one", at: now, group: "team" })]);
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  const { html } = await browser.get();
  const month = `${new Date(now).toISOString().slice(0, 7)}-01T00:00:00.000Z`;
  assertEquals(linksTo(html, ">group team<"), [
    `/requests?${new URLSearchParams({ since: month, group: "team", sort: "cost" })}`,
  ]);
  assertEquals(linksTo((await browser.get("/budgets")).html, ">group team<"), linksTo(html, ">group team<"));
});

Deno.test("the overview says from when single requests are stored, and still shows earlier days", async () => {
  await using gateway = startConsole();
  const now = Date.now();
  const day = 86_400_000;
  const { ledger } = gateway.store;
  await ledger.append([entryOf({ id: "old", at: now - 2 * day }), entryOf({ id: "new", at: now })]);
  while (await ledger.prune(Math.floor(now / day), Infinity));
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  const { status, html } = await browser.get("?by=upstream&period=7d");
  assertEquals(status, 200);
  assertStringIncludes(html, "Cannot sum up by upstream: single requests are kept from");
  assertStringIncludes((await browser.get("?by=model&period=7d")).html, "a sample of 1 requests");
});

Deno.test("the overview of a gateway without requests leads to the playground, keys and clients", async () => {
  await using gateway = startConsole();
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  const { html } = await browser.get();
  assertStringIncludes(html, "No requests in this period. Try a model");
  for (const path of ["/playground", "/keys", "/connect"]) {
    assertEquals([path, (await browser.get(linksTo(html, `console${path}"`).at(-1) ?? "")).status], [path, 200]);
  }
  assert(!html.includes("<svg class"), "no empty charts");
});
