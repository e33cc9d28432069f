import { assertEquals, assertStringIncludes } from "@std/assert";
import { startReloadable } from "../e2e/reload/reloadable_gateway.ts";
import { ADMIN_KEY } from "../support/keyed_gateway.ts";
import { Browser } from "./browser.ts";

const ADMIN = { admin: { key: { env: "ADMIN_KEY" } } };

Deno.test("a reload is logged with changed members for every trigger, and not at all without differences", async () => {
  await using gateway = await startReloadable(ADMIN, { ADMIN_KEY });
  const browser = new Browser({ adminUrl: gateway.origin });
  await browser.signIn(ADMIN_KEY);
  await browser.post("/configuration", {});
  gateway.write(JSON.stringify({ ...ADMIN, groups: { team: { price_factor: "2" } } }));
  assertEquals((await browser.post("/configuration", {})).path, "/configuration");
  gateway.write(JSON.stringify({ ...ADMIN, groups: { team: { price_factor: "3" } } }));
  await gateway.gateway().reloader.reload("file");
  const changes = await gateway.gateway().store.operators.changes({ limit: 9 });
  const reloads = changes.filter(({ action }) => action === "reload_configuration").toReversed();
  assertEquals(reloads.map(({ author, address }) => [author, address]), [
    ["admin_key", "127.0.0.1"],
    ["configuration", undefined],
  ]);
  assertEquals(Object.keys(reloads[0]?.before ?? {}), ["groups.team"]);
  assertEquals([reloads[1]?.before, reloads[1]?.after], [
    { "groups.team.price_factor": "2" },
    { "groups.team.price_factor": "3" },
  ]);
  const { html } = await browser.get("/changes");
  assertStringIncludes(html, 'groups.team.price_factor: <code title="2">2</code>');
});
