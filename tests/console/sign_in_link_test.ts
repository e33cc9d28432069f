import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import {
  acceptsSignInLinks,
  addSignInLink,
  createLocalAdmin,
  hasLocalConsole,
  LINK_MS,
} from "../../lib/access/sign_in_link.ts";
import { hashKey } from "../../lib/access/keys.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { exchange } from "../server/serve.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { Browser, csrfOf, startConsole } from "./browser.ts";

/** A gateway without `admin` that was started at a terminal, with the present time. */
function startLocal(): TestGateway {
  return startGateway({}, { localAdmin: createLocalAdmin(), now: Date.now });
}

/** A new link of a gateway, as a path of the console. */
async function linkOf(
  { store, adminUrl }: Pick<TestGateway, "store" | "adminUrl">,
  at = Date.now(),
): Promise<{ path: string; token: string }> {
  const link = await addSignInLink(store.operators, { at: adminUrl, origin: { author: "command_line", at } });
  assertMatch(link, /^http:\/\/127\.0\.0\.1:\d+\/admin\/console\/sign-in\?link=[\w-]{43}$/);
  return { path: link.slice(`${adminUrl}/admin/console`.length), token: link.slice(-43) };
}

/** Status of a request with another Host header. */
async function statusFor(port: number, path: string, headers: string): Promise<number> {
  const head = `GET /admin/console${path} HTTP/1.1\r\nConnection: close\r\n${headers}\r\n\r\n`;
  return (await exchange(port, [head])).status;
}

Deno.test("a link opens one session of all rights, once", async () => {
  await using gateway = startLocal();
  const { path, token } = await linkOf(gateway);
  const browser = new Browser(gateway);
  assertEquals((await browser.get()).path, "/sign-in");
  assertStringIncludes((await browser.get("/sign-in")).html, "sluice console");
  assertEquals((await browser.get(path)).path, "");
  const created = await browser.post("/keys", { name: "mine", group: "default" });
  assertStringIncludes(created.html, '<pre id="secret">sk-sluice-');

  const second = new Browser(gateway);
  const used = await second.get(path);
  assertEquals([used.status, second.cookie], [401, ""]);
  assertStringIncludes(used.html, "This link is no longer valid");
  const changes = await gateway.store.operators.changes({ limit: 9 });
  assertEquals(changes.map(({ author, action }) => [author, action]), [
    ["one_time_link", "create_key"],
    ["one_time_link", "sign_in"],
    ["command_line", "create_sign_in_link"],
  ]);
  assert(!JSON.stringify([changes, gateway.logs, gateway.requestLines]).includes(token), "no log has the token");
});

Deno.test("of many browsers that use one link at once, one is signed in", async () => {
  await using gateway = startLocal();
  const { path } = await linkOf(gateway);
  const browsers = [1, 2, 3, 4, 5].map(() => new Browser(gateway));
  await Promise.all(browsers.map((browser) => browser.get(path)));
  assertEquals(browsers.filter(({ cookie }) => cookie !== "").length, 1);
});

Deno.test("a link is kept as a hash, and ends after ten minutes", async () => {
  await using gateway = startLocal();
  const { path, token } = await linkOf(gateway, Date.now() - LINK_MS);
  const browser = new Browser(gateway);
  assertEquals((await browser.get(path)).status, 401);
  const fresh = await linkOf(gateway);
  assertEquals(await gateway.store.operators.takeSignInLink(fresh.token, Date.now()), false);
  assertEquals(await gateway.store.operators.takeSignInLink(hashKey(fresh.token), Date.now()), true);
  assert(token !== fresh.token);
});

Deno.test("a link is not used up by HEAD, by a prefetch, or by another path", async () => {
  await using gateway = startLocal();
  const { path } = await linkOf(gateway);
  const url = `${gateway.adminUrl}/admin/console${path}`;
  const requests = [[{ method: "HEAD" }, 200], [{ headers: { "sec-purpose": "prefetch;prerender" } }, 503]] as const;
  for (const [init, status] of requests) {
    const response = await fetch(url, { ...init, redirect: "manual" });
    await response.body?.cancel();
    assertEquals([response.status, response.headers.get("set-cookie")], [status, null]);
  }
  await new Browser(gateway).get(path.replace("/sign-in", ""));
  assertEquals((await new Browser(gateway).get(path)).path, "");
});

Deno.test("wrong links are refused, and too many of them for a while", async () => {
  await using gateway = startLocal();
  const { token } = await linkOf(gateway);
  const wrong = [token.toLowerCase(), token.slice(1), `${token}A`, "", "<script>", hashKey(token)];
  for (const text of wrong) {
    const { status, html } = await new Browser(gateway).get(`/sign-in?link=${text}`);
    assertEquals(status, 401, text);
    assert(!html.includes("<script>"));
  }
  await using far = startConsole({ trusted_proxies: ["127.0.0.0/8"] });
  let status = 401;
  for (let attempt = 0; status === 401 && attempt < 30; attempt++) {
    const url = `${far.adminUrl}/admin/console/sign-in?link=wrong`;
    const response = await fetch(url, { headers: { "x-forwarded-for": "192.0.2.7" } });
    await response.body?.cancel();
    ({ status } = response);
  }
  assertEquals(status, 429);
});

Deno.test("the local console cannot be reached under another name, through a proxy, or as the admin API", async () => {
  await using gateway = startLocal();
  const { path } = await linkOf(gateway);
  const browser = new Browser(gateway);
  await browser.get((await linkOf(gateway)).path);
  const { cookie } = browser;
  const hosts: [headers: string, status: number][] = [
    ["Host: evil.example", 404],
    [`Host: evil.example:${gateway.port}`, 404],
    ["Host: localhost.evil.example", 404],
    ["Host: 127.0.0.1.evil.example", 404],
    ["Host: 0.0.0.0", 404],
    ["Host: 192.0.2.1", 404],
    ["Host: localhost\r\nX-Forwarded-For: 192.0.2.1", 404],
    ["Host: localhost\r\nForwarded: for=192.0.2.1", 404],
    ["Host: localhost\r\nX-Forwarded-Host: llm.example.com", 404],
    ["Host: localhost", 200],
    [`Host: LOCALHOST:${gateway.port}`, 200],
    ["Host: 127.0.0.1", 200],
    [`Host: [::1]:${gateway.port}`, 200],
  ];
  for (const [headers, status] of hosts) {
    for (const page of ["/sign-in", "/assets/console.css"]) {
      assertEquals(await statusFor(gateway.port, page, headers), status, `${headers} ${page}`);
    }
    const signedIn = await statusFor(gateway.port, "/keys", `${headers}\r\nCookie: ${cookie}`);
    assertEquals(signedIn, status, `${headers} with a session`);
    if (status === 404) assertEquals(await statusFor(gateway.port, path, headers), 404);
  }
  assertEquals((await new Browser(gateway).get(path)).path, "", "a refused request does not use a link up");
  for (const name of ["keys", "config", "changes"]) {
    const response = await fetch(`${gateway.url}/admin/v1/${name}`, { headers: { authorization: "Bearer x", cookie } });
    await response.body?.cancel();
    assertEquals(response.status, 404, name);
  }
});

Deno.test("a form without a token, or from another site, changes nothing in the local console", async () => {
  await using gateway = startLocal();
  const browser = new Browser(gateway);
  await browser.get((await linkOf(gateway)).path);
  const csrf = csrfOf((await browser.get()).html);
  assert(csrf !== "");
  const forms = [[{ csrf: "" }, {}], [{ csrf }, { origin: "https://evil.example" }]] as const;
  for (const [fields, headers] of forms) {
    const { status } = await browser.post("/keys", { name: "sneaked", group: "default", ...fields }, headers);
    assertEquals(status, 403);
  }
  assertEquals(await gateway.store.keys.find("sneaked"), undefined);
});

Deno.test("a link works beside an admin key on a loopback address, and nowhere else", async () => {
  await using near = startConsole();
  await using far = startConsole({ listen: { hostname: "0.0.0.0" } });
  await using none = startGateway({}, { now: Date.now });
  assertEquals((await new Browser(near).get((await linkOf(near)).path)).path, "");
  const refused = await new Browser(far).get((await linkOf(far)).path);
  assertEquals(refused.status, 401);
  assertEquals((await new Browser(none).get((await linkOf(none)).path)).status, 404);
});

Deno.test("a local console is there without admin, at a terminal, on a loopback address that no process shares", () => {
  const config = (file: Parameters<typeof parseConfig>[0]) => parseConfig(file, () => "0123456789abcdef");
  for (const hostname of ["127.0.0.1", "localhost", "::1", "127.8.8.8"]) {
    assert(hasLocalConsole(config({ listen: { hostname } }), true), hostname);
  }
  assert(!hasLocalConsole(config({}), false));
  for (const hostname of ["0.0.0.0", "::", "192.0.2.1", "localhost.example"]) {
    assert(!hasLocalConsole(config({ listen: { hostname } }), true), hostname);
  }
  const shared = { store: "postgres://h/d", limits_store: "redis://h" };
  assert(!hasLocalConsole(config({ ...shared, listen: { reuse_port: true } }), true));
  const admin = { key: { env: "ADMIN_KEY" } };
  assert(!hasLocalConsole(config({ admin }), true));
  assert(acceptsSignInLinks(config({ admin, listen: { hostname: "0.0.0.0" } })) === false);
  assert(acceptsSignInLinks(config({ admin: { ...admin, listen: { port: 9 } }, listen: { hostname: "0.0.0.0" } })));
});
