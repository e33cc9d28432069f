import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { createLocalAdmin } from "../../lib/access/sign_in_link.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { Browser } from "../console/browser.ts";
import { ADMIN_KEY, startKeyed } from "../support/keyed_gateway.ts";
import { exchange } from "./serve.ts";

const BROWSER = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

async function load(url: string, init: RequestInit = { headers: BROWSER }): Promise<Response & { html: string }> {
  const response = await fetch(`${url}/`, init);
  return Object.assign(response, { html: await response.text() });
}

Deno.test("a browser gets a page with the base URLs, and the console where this listener has one", async () => {
  const admin = { key: { env: "ADMIN_KEY" } };
  await using none = startGateway({});
  await using both = startKeyed({ admin });
  await using apart = startKeyed({ admin: { ...admin, listen: { port: 1 } } });
  await using local = startGateway({}, { localAdmin: createLocalAdmin() });
  const cases: [origin: string, hasBaseUrls: boolean, hasConsole: boolean][] = [
    [none.url, true, false],
    [both.url, true, true],
    [apart.url, true, false],
    [apart.adminUrl, false, true],
    [local.url, true, true],
  ];
  for (const [origin, hasBaseUrls, hasConsole] of cases) {
    const { status, headers, html } = await load(origin);
    assertEquals([status, headers.get("content-type")], [200, "text/html; charset=utf-8"]);
    assertEquals(html.includes(`${origin}/v1`) && html.includes(`${origin}/anthropic`), hasBaseUrls, origin);
    assertEquals(html.includes('href="/admin/console"'), hasConsole, origin);
    const policy = headers.get("content-security-policy") ?? "";
    for (const part of ["default-src 'none'", "style-src 'sha256-", "frame-ancestors 'none'"]) {
      assertStringIncludes(policy, part);
    }
    assertEquals([headers.get("x-content-type-options"), headers.get("cache-control")], ["nosniff", "no-store"]);
    assert(!/<script|style="|\bon\w+=/.test(html));
    assert(!/\d+\.\d+\.\d+/.test(html.replaceAll("127.0.0.1", "")), "no version is shown");
  }
});

Deno.test("API clients get the error in JSON at the same address, as at any path that is not there", async () => {
  await using gateway = startGateway({});
  const requests: RequestInit[] = [
    { headers: { accept: "application/json" } },
    { headers: { accept: "*/*" } },
    { method: "POST", headers: BROWSER },
    { method: "OPTIONS", headers: BROWSER },
  ];
  for (const init of requests) {
    const { status, headers, html } = await load(gateway.url, init);
    assertEquals([status, headers.get("content-type")], [404, "application/json"], JSON.stringify(init));
    assertStringIncludes(html, "no such route");
  }
  const other = await fetch(`${gateway.url}/index.html`, { headers: BROWSER });
  await other.body?.cancel();
  assertEquals(other.status, 404);
  const head = await fetch(`${gateway.url}/`, { method: "HEAD", headers: BROWSER });
  assertEquals([head.status, await head.text()], [200, ""]);
});

Deno.test("an unknown page of the console is HTML for browsers, and JSON for others or without a console", async () => {
  const admin = { key: { env: "ADMIN_KEY" } };
  await using none = startGateway({});
  await using both = startKeyed({ admin });
  await using apart = startKeyed({ admin: { ...admin, listen: { port: 1 } } });
  const cases: [origin: string, accept: string, isPage: boolean][] = [
    [none.url, BROWSER.accept, false],
    [both.url, BROWSER.accept, true],
    [both.url, "application/json", false],
    [apart.url, BROWSER.accept, false],
    [apart.adminUrl, BROWSER.accept, true],
  ];
  const browser = new Browser(both);
  await browser.signIn(ADMIN_KEY);
  for (const [origin, accept, isPage] of cases) {
    for (const path of ["/admin/console/nothing", "/admin/console/keys/a/b/%3Cscript%3E"]) {
      const texts = [];
      for (const cookie of ["", browser.cookie]) {
        const response = await fetch(origin + path, { headers: { accept, cookie } });
        const type = response.headers.get("content-type") ?? "";
        assertEquals([response.status, type.startsWith("text/html")], [404, isPage], `${origin}${path} ${accept}`);
        const text = await response.text();
        assert(!/script/i.test(text) && text.includes('<a href="/admin/console">') === isPage, text);
        texts.push(text.replace(/req_\w+/, ""));
      }
      assertEquals(texts[0], texts[1], "a session changes nothing");
    }
  }
});

/** The page that a request with this Host header gets. */
async function pageFor({ port }: TestGateway, host: string, more = ""): Promise<string> {
  const head = `GET / HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\nConnection: close\r\n${more}\r\n`;
  return (await exchange(port, [head])).body;
}

Deno.test("the page shows the host only if it is a valid one", async () => {
  await using gateway = startGateway({});
  assertStringIncludes(await pageFor(gateway, "llm.example.com"), "<code>http://llm.example.com/v1</code>");
  assertStringIncludes(
    await pageFor(gateway, "llm.example.com", "X-Forwarded-Proto: https\r\n"),
    "<code>https://llm.example.com/anthropic</code>",
    "Gemini CLI: <code>https://llm.example.com</code>",
  );
  assertStringIncludes(await pageFor(gateway, "[::1]:8790"), "<code>http://[::1]:8790/v1</code>");
  for (const host of ["<script>alert(1)</script>", 'a"onload="x', "a&lt;b"]) {
    const page = await pageFor(gateway, host);
    assert(!page.includes("alert(1)") && !page.includes("onload") && !page.includes("&lt;"), page);
  }
});

Deno.test("the page links to the console only for clients that can reach it", async () => {
  await using local = startGateway({}, { localAdmin: createLocalAdmin() });
  assertStringIncludes(await pageFor(local, "localhost"), "/admin/console");
  assert(!(await pageFor(local, "evil.example")).includes("/admin/console"));
  assert(!(await pageFor(local, "localhost", "X-Forwarded-For: 192.0.2.1\r\n")).includes("/admin/console"));
});
