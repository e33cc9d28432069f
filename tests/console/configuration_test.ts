import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { startReloadable } from "../e2e/reload/reloadable_gateway.ts";
import { ConfigError } from "../../lib/config.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { ConfigStoreError, createReloader } from "../../lib/config/reloader.ts";
import { takeOwnership } from "../../lib/store/sqlite/owner_lock.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { inFolder } from "../store/in_folder.ts";
import { startGateway } from "../support/gateway.ts";
import { ADMIN_KEY, startKeyed, VIEWER_KEY } from "../support/keyed_gateway.ts";
import { signedIn } from "./browser.ts";

const ADMIN = { admin: { key: { env: "ADMIN_KEY" }, viewer_key: { env: "VIEWER_KEY" } } };
const SECRETS = { ADMIN_KEY, VIEWER_KEY, UPSTREAM_KEY: "secret-of-the-upstream-0123" };

/** The part of the page that compares the file with the active configuration. */
function differences(html: string): string {
  return /<h2>The file and the configuration in force<\/h2>(.*?)<h2>Warnings/s.exec(html)?.[1] ?? "";
}

Deno.test("the page shows what a reload would change or why it is refused, and the button reloads", async () => {
  const host = { vendor: "openai-compatible", base_url: "http://127.0.0.1:9/v1", api_key: { env: "UPSTREAM_KEY" } };
  const file = { ...ADMIN, upstreams: { host } };
  await using gateway = await startReloadable(file, SECRETS);
  const browser = await signedIn({ adminUrl: gateway.origin }, ADMIN_KEY);
  const page = async () => (await browser.get("/configuration")).html;
  assertStringIncludes(differences(await page()), "The configuration in force is that of the file.");

  gateway.write(JSON.stringify({ ...file, listen: { port: 1 }, groups: { team: { price_factor: "2" } } }));
  const changed = differences(await page());
  assertMatch(changed, /<code>groups\.team<\/code>.*?not set.*?&quot;price_factor&quot;:&quot;2&quot;/);
  assertStringIncludes(changed, "These members change at the next start: listen.");
  assertEquals(gateway.gateway().config.groups.team, undefined, "the page changes nothing");
  await browser.post("/configuration", { action: "reload" });
  assertEquals(gateway.gateway().config.groups.team?.price_factor, "2");
  assert(!differences(await page()).includes("groups.team"));

  gateway.env.set("UPSTREAM_KEY", "another-secret-of-the-upstream");
  const secret = await page();
  assertStringIncludes(differences(secret), "Only secrets differ.");
  gateway.write('{ "groups": { "<script>": 1 } }');
  const refused = await page();
  assertStringIncludes(differences(refused), "The file cannot be used:");
  assert(!refused.includes("<script>") && refused.includes("&lt;script>"));
  for (const hidden of Object.values(SECRETS)) assert(!(secret + refused).includes(hidden));
});

Deno.test("a reload that is refused has the status of the admin API", async () => {
  const env = new Map(Object.entries(SECRETS));
  const first = { config: parseConfig(ADMIN, (name) => env.get(name)), path: "sluice.jsonc" };
  let error: Error = new ConfigError(["groups.a: wrong", "groups.b: <wrong>"]);
  const reloader = createReloader({
    first,
    load: () => Promise.reject(error),
    apply() {},
    now: Date.now,
    log() {},
  });
  await using gateway = startKeyed(ADMIN, { reloader });
  const browser = await signedIn(gateway, ADMIN_KEY);
  const invalid = await browser.post("/configuration", { action: "reload" });
  assertEquals(invalid.status, 400);
  assertStringIncludes(invalid.html, "groups.a: wrong</p>");
  error = new ConfigStoreError("The store is out of reach");
  const away = await browser.post("/configuration", { action: "reload" });
  assertEquals(away.status, 503);
  assertStringIncludes(away.html, "The store is out of reach");
});

Deno.test("the page shows the warnings of check", async () => {
  await using gateway = await startReloadable({
    ...ADMIN,
    groups: { team: { models: ["nobody/nothing"] } },
  }, SECRETS);
  const browser = await signedIn({ adminUrl: gateway.origin }, VIEWER_KEY);
  const { html } = await browser.get("/configuration");
  assertMatch(html, /<h2>Warnings<\/h2>.*<code>groups\.team\.models/s);
  assert(!/name="action"/.test(html), "a viewer gets no button");
  for (const action of ["reload", "doctor"]) {
    assertEquals((await browser.post("/configuration", { action })).status, 403);
  }
});

Deno.test("the page shows the findings of the doctor, and the gateway still owns its store", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const store = openSqliteStore(path, { own: true });
    {
      await using gateway = startGateway({
        ...ADMIN,
        store: `sqlite:${path}`,
        upstreams: { host: { vendor: "openai-compatible", base_url: "http://127.0.0.1:9/v1" } },
      }, { store, adminKey: ADMIN_KEY, viewerKey: VIEWER_KEY, now: Date.now });
      const browser = await signedIn(gateway);
      const { status, html } = await browser.post("/configuration", { action: "doctor" });
      assertEquals(status, 200);
      assertStringIncludes(html, "This gateway uses it");
      assertMatch(
        html,
        /<span class="state bad">error<\/span><\/td><td[^>]*>upstream host<\/td><td[^>]*>Cannot connect/,
      );
      let isOwned = false;
      try {
        takeOwnership(`${path}-owner`).close();
      } catch {
        isOwned = true;
      }
      assert(isOwned);
    }
  }));
