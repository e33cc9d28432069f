import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import denoJson from "../../deno.json" with { type: "json" };
import { readNodes, startNodeReports } from "../../lib/admin/nodes.ts";
import { Secret } from "../../lib/secret.ts";
import { openPostgresStore } from "../../lib/store/postgres/store.ts";
import type { Store } from "../../lib/store/store.ts";
import { freshDatabase, HAS_POSTGRES, postgresTest } from "../support/databases.ts";
import { startGateway } from "../support/gateway.ts";
import { ADMIN_KEY, VIEWER_KEY } from "../support/keyed_gateway.ts";
import { eventually } from "../support/soon.ts";
import { Browser } from "./browser.ts";

const FILE = { admin: { key: { env: "ADMIN_KEY" }, viewer_key: { env: "VIEWER_KEY" } } };
const OPTIONS = { adminKey: ADMIN_KEY, viewerKey: VIEWER_KEY };

function openServing(url: string): Promise<Store> {
  return openPostgresStore(new Secret(url), {
    serving: { keyAgeMs: 60_000, journalEntries: 10, log: () => {} },
  });
}

Deno.test("a gateway with its own store shows only itself", async () => {
  await using gateway = startGateway(FILE, { ...OPTIONS, now: Date.now });
  startNodeReports(() => gateway.gateway)();
  const browser = new Browser(gateway);
  await browser.signIn(VIEWER_KEY);
  const { html } = await browser.get("/node");
  assertStringIncludes(html, `(this one)</td><td >${denoJson.version}</td>`);
  assertStringIncludes(html, "No other node uses this store.");
  assertEquals((await readNodes(gateway.gateway)).length, 1);
});

Deno.test({
  name: "each node shows the others of its database: silent ones until they are forgotten, ended ones no longer",
  ignore: !HAS_POSTGRES,
  async fn() {
    await using database = await freshDatabase();
    const [one, other] = await Promise.all([openServing(database.url), openServing(database.url)]);
    let now = Date.now();
    await using first = startGateway(FILE, { ...OPTIONS, store: one, now: () => now });
    await using second = startGateway(FILE, { ...OPTIONS, store: other, now: () => now });
    const endSecond = startNodeReports(() => second.gateway);
    await eventually(async () => assertEquals((await readNodes(first.gateway)).length, 2));
    const [own, peer] = await readNodes(first.gateway);
    assertEquals([own?.isThis, peer?.isThis, peer?.isSilent], [true, false, false]);
    assertEquals([peer?.facts.version, peer?.facts.limits, peer?.facts.store], [denoJson.version, "memory", true]);
    const browser = new Browser(first);
    await browser.signIn(VIEWER_KEY);
    const page = (await browser.get("/node")).html;
    assertMatch(page, new RegExp(`${own?.id} \\(this one\\).*<td >${peer?.id}</td>`));

    now += 31_000;
    assertEquals((await readNodes(first.gateway))[1]?.isSilent, true);
    assertStringIncludes((await browser.get("/node")).html, '<span class="state bad">silent</span>');
    now += 600_000;
    assertEquals((await readNodes(first.gateway)).length, 1);
    now -= 631_000;
    endSecond();
    await eventually(async () => assertEquals((await readNodes(first.gateway)).length, 1));
  },
});

postgresTest("what another node reports of itself is shown as text", async () => {
  await using database = await freshDatabase();
  const store = await openServing(database.url);
  await using gateway = startGateway(FILE, { ...OPTIONS, store, now: Date.now });
  const [own] = await readNodes(gateway.gateway);
  assert(own !== undefined);
  const facts = { ...own.facts, version: "<script>1</script>", status: "<img src=x>" };
  await store.shared?.nodes.report({ id: "<b>", at: Date.now(), facts: { ...facts } }, 0);
  const browser = new Browser(gateway);
  await browser.signIn(VIEWER_KEY);
  const { html } = await browser.get("/node");
  assertStringIncludes(html, "&lt;script>");
  assert(!/<script>1|<img|<b>/.test(html));
});
