import { assert, assertEquals, assertNotMatch, assertStringIncludes } from "@std/assert";
import { ACCESS } from "../../lib/access/access_table.ts";
import { createLocalAdmin } from "../../lib/access/sign_in_link.ts";
import { addSignInLink } from "../../lib/access/sign_in_link.ts";
import { startReloadable } from "../e2e/reload/reloadable_gateway.ts";
import { startGateway } from "../support/gateway.ts";
import { ADMIN_KEY, VIEWER_KEY } from "../support/keyed_gateway.ts";
import { Browser, csrfOf, signedIn, startConsole } from "./browser.ts";

const FILE = { admin: { key: { env: "ADMIN_KEY" }, viewer_key: { env: "VIEWER_KEY" } } };
const HOUR_MS = 3_600_000;

/** Paths of the routes of the console that need a session, with names for their parameters. */
function pathsOf(method: "GET" | "POST", key: string): string[] {
  return Object.entries(ACCESS).flatMap(([name, { credential }]) => {
    const [of, path = ""] = name.split(" ");
    if (of !== method || credential !== "session") return [];
    const named = path.replace("[key]", key).replace("[group]", "default").replace("[request_id]", "req_none");
    return [named.replace("/admin/console", "")];
  });
}

Deno.test("every form of the console wants its own token and its own origin, and an operator", async () => {
  await using gateway = startConsole();
  const { id } = await gateway.addKey();
  const [browser, other, viewer] = await Promise.all(
    [ADMIN_KEY, ADMIN_KEY, VIEWER_KEY].map((key) => signedIn(gateway, key)),
  );
  if (browser === undefined || other === undefined || viewer === undefined) throw new Error("three browsers");
  const csrf = csrfOf((await other.get()).html);
  const paths = pathsOf("POST", id);
  assert(paths.length >= 4, paths.join());
  const before = await gateway.store.keys.list();
  const { length: changes } = await gateway.store.operators.changes({ limit: 99 });
  for (const path of paths) {
    const forms: [what: string, status: Promise<{ status: number }>][] = [
      ["without a token", browser.post(path, { csrf: "" })],
      ["with the token of another session", browser.post(path, { csrf })],
      ["from another site", browser.post(path, {}, { origin: "https://evil.example" })],
      ["from a sandboxed frame", browser.post(path, {}, { origin: "null" })],
      ["of a viewer", viewer.post(path, {})],
    ];
    for (const [what, answer] of forms) assertEquals((await answer).status, 403, `${path} ${what}`);
    assertEquals((await new Browser(gateway).post(path, {})).path, "/sign-in", `${path} without a session`);
  }
  assertEquals(await gateway.store.keys.list(), before);
  assertEquals((await gateway.store.operators.changes({ limit: 99 })).length, changes);
});

Deno.test("pages of the console are self-contained: no frame, no inline script, nothing from other hosts", async () => {
  await using gateway = startConsole();
  const { id } = await gateway.addKey();
  const browser = await signedIn(gateway, VIEWER_KEY);
  for (const path of pathsOf("GET", id)) {
    const response = await fetch(`${gateway.adminUrl}/admin/console${path}`, { headers: { cookie: browser.cookie } });
    if (response.headers.get("content-type")?.startsWith("text/html") !== true) {
      await response.body?.cancel();
      continue;
    }
    const html = await response.text();
    const policy = response.headers.get("content-security-policy") ?? "";
    for (const part of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"]) {
      assertStringIncludes(policy, part, path);
    }
    assertNotMatch(policy, /unsafe|\*/, path);
    assertEquals(response.headers.get("x-content-type-options"), "nosniff", path);
    assertEquals(response.headers.get("cache-control"), "no-store", path);
    assertNotMatch(
      html,
      /<script(?![^>]* src="\/admin\/console\/)|\sstyle="|\son\w+="|(?:src|href)="(?:https?:)?\/\//,
      path,
    );
  }
});

Deno.test("a changed admin key ends the sessions of its holder and of links, and not the viewer's", async () => {
  await using gateway = await startReloadable(FILE, { ADMIN_KEY, VIEWER_KEY });
  const at = { adminUrl: gateway.origin };
  const [admin, viewer] = [await signedIn(at, ADMIN_KEY), await signedIn(at, VIEWER_KEY)];
  const linked = new Browser(at);
  const { operators } = gateway.gateway().store;
  const link = await addSignInLink(operators, {
    at: gateway.origin,
    origin: { author: "command_line", at: Date.now() },
  });
  await linked.get(link.slice(`${gateway.origin}/admin/console`.length));
  for (const browser of [admin, viewer, linked]) assertEquals((await browser.get("/keys")).path, "/keys");
  gateway.env.set("ADMIN_KEY", "another-admin-key-of-the-tests");
  await gateway.gateway().reloader.reload("signal");
  assertEquals((await viewer.get("/keys")).path, "/keys");
  for (const browser of [admin, linked]) assertEquals((await browser.get("/keys")).path, "/sign-in");
});

Deno.test("a session ends after twelve hours", async () => {
  let now = Date.now();
  await using gateway = startGateway(FILE, { adminKey: ADMIN_KEY, viewerKey: VIEWER_KEY, now: () => now });
  const browser = await signedIn(gateway, ADMIN_KEY);
  now += 12 * HOUR_MS - 1;
  assertEquals((await browser.get("/keys")).path, "/keys");
  now += 1;
  assertEquals((await browser.get("/keys")).path, "/sign-in");
});

/** Opens a stream of requests and reads its beginning. */
async function openStream(url: string, headers: HeadersInit): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const response = await fetch(url, { headers, redirect: "manual" });
  assertEquals(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert(response.body !== null);
  const reader = response.body.getReader();
  assertEquals((await reader.read()).done, false);
  return reader;
}

/** Reads a stream to its end, which must come within a minute. */
async function untilEnd(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const deadline = AbortSignal.timeout(60_000);
  deadline.onabort = () => reader.cancel().catch(() => {});
  while (!(await reader.read()).done);
  assert(!deadline.aborted, "the stream goes on");
  deadline.onabort = null;
}

Deno.test("open streams of requests end with the key that opened them, and other streams continue", async () => {
  await using gateway = await startReloadable(FILE, { ADMIN_KEY, VIEWER_KEY });
  const at = { adminUrl: gateway.origin };
  const [admin, viewer] = [await signedIn(at, ADMIN_KEY), await signedIn(at, VIEWER_KEY)];
  const [console, api] = ["console", "v1"].map((side) => `${gateway.origin}/admin/${side}/requests/stream`);
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
  const ending = [
    await openStream(console ?? "", { cookie: admin.cookie }),
    await openStream(api ?? "", bearer(ADMIN_KEY)),
  ];
  const lasting = [
    await openStream(console ?? "", { cookie: viewer.cookie }),
    await openStream(api ?? "", bearer(VIEWER_KEY)),
  ];
  gateway.env.set("ADMIN_KEY", "another-admin-key-of-the-tests");
  await gateway.gateway().reloader.reload("signal");
  await Promise.all(ending.map(untilEnd));
  await (await gateway.ask({ model: "sluice/echo", messages: [{ role: "user", content: "hi" }] })).body?.cancel();
  for (const reader of lasting) {
    assertEquals((await reader.read()).done, false);
    await reader.cancel();
  }
});

Deno.test("an open live tail ends when its session is signed out or expires", async () => {
  let now = Date.now();
  await using gateway = startGateway(FILE, { adminKey: ADMIN_KEY, viewerKey: VIEWER_KEY, now: () => now });
  const url = `${gateway.adminUrl}/admin/console/requests/stream`;
  const [leaving, staying] = [await signedIn(gateway, ADMIN_KEY), await signedIn(gateway, ADMIN_KEY)];
  const left = await openStream(url, { cookie: leaving.cookie });
  const stayed = await openStream(url, { cookie: staying.cookie });
  await leaving.post("/sign-out", {});
  await untilEnd(left);
  now += 12 * HOUR_MS;
  await untilEnd(stayed);
});

Deno.test("a session cannot be made to last longer, or to have more rights", async () => {
  await using gateway = startConsole();
  const browser = await signedIn(gateway, VIEWER_KEY);
  const [name = "", value = ""] = browser.cookie.split("=");
  const [author, expires, id, signature] = value.split(".");
  assertEquals(author, "viewer_key");
  const forged = [
    ["admin_key", expires, id, signature],
    ["one_time_link", expires, id, signature],
    [author, Number(expires) + 1, id, signature],
    [author, expires, `${id}a`, signature],
    [author, expires, id, ""],
    [author, "Infinity", id, signature],
  ];
  for (const parts of forged) {
    browser.cookie = `${name}=${parts.join(".")}`;
    assertEquals((await browser.get("/keys")).path, "/sign-in", parts.join("."));
  }
});

Deno.test("a browser that speaks HTTP/2, which has no Host header, can use the console", async () => {
  using client = Deno.createHttpClient({ http1: false, http2: true });
  await using keyed = startConsole();
  const browser = new Browser(keyed, client);
  assertEquals((await browser.signIn(ADMIN_KEY)).path, "");
  const created = await browser.post("/keys", { name: "mine", group: "default" });
  assertStringIncludes(created.html, '<pre id="secret">sk-sluice-');
  assertEquals((await browser.post("/keys", {}, { origin: "https://evil.example" })).status, 403);

  await using local = startGateway({}, { localAdmin: createLocalAdmin() });
  assertEquals((await new Browser(local, client).get()).path, "/sign-in");
  const start = await fetch(local.url, { client, headers: { accept: "text/html" } });
  assertStringIncludes(await start.text(), `<code>${local.url}/v1</code>`);
});
