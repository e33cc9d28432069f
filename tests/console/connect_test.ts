import { assertEquals, assertMatch, assertNotMatch, assertStringIncludes } from "@std/assert";
import { CLIENTS } from "../../lib/console/clients.ts";
import { ADMIN_KEY, VIEWER_KEY } from "../support/keyed_gateway.ts";
import { Browser, signedIn, startConsole } from "./browser.ts";

/** The documentation, in one text without line breaks. */
async function documentation(folder = new URL("../../docs/", import.meta.url)): Promise<string> {
  let text = "";
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) text += await documentation(new URL(`${name}/`, folder));
    else if (name.endsWith(".md")) text += await Deno.readTextFile(new URL(name, folder));
  }
  return text.replaceAll(/\s+/g, " ");
}

/** Clients that the page about clients lists under SDKs and coding agents, in headings or in the first column of tables. */
async function listedClients(): Promise<string[]> {
  const text = await Deno.readTextFile(new URL("../../docs/reference/clients.md", import.meta.url));
  const sections = text.split(/^## /m).filter((section) => /^(?:SDKs|Coding agents)\n/.test(section));
  assertEquals(sections.length, 2);
  const rows = sections.flatMap((section) => [...section.matchAll(/^(?:###|\|) *([^|\n]+?) *(?:\||$)/gm)]);
  const names = rows.flatMap(([, row = ""]) => row.split(", "));
  return names.filter((name) => !/^(?:-+|SDK|Agent|chat|responses|messages|Gemini)$/.test(name));
}

Deno.test("the settings of the console are those of the documentation, and no client of it is missing", async () => {
  const docs = await documentation();
  const connection = { origin: "http://127.0.0.1:8790", model: "acme/assistant" };
  for (const { name, settings } of CLIENTS) {
    // The address, and the name that it is set as.
    const text = settings(connection);
    const marks = text.match(/(?:[\w"]+(?::| =) )?[\w"=]*http:\/\/127\.0\.0\.1:8790[/\w]*/g) ?? [];
    assertEquals(marks.length > 0, true, name);
    for (const mark of marks.map((mark) => mark.replace(/^(?:baseURL = "|URL: )/, ""))) {
      assertStringIncludes(docs, mark, name);
    }
    assertStringIncludes(docs, name.replace(/, .*/, ""));
  }
  const names = CLIENTS.map(({ name }) => name.replace(/, .*/, ""));
  for (const listed of await listedClients()) {
    assertEquals(names.some((name) => listed.includes(name)), true, `the console has no settings for ${listed}`);
  }
});

Deno.test("the page of clients has the settings for a key and a model, and no secret", async () => {
  await using gateway = startConsole();
  const browser = new Browser(gateway);
  await browser.signIn(VIEWER_KEY);
  const { html } = await browser.get("/connect?key=good&model=sluice%2Fecho");
  for (const { name } of CLIENTS) assertStringIncludes(html, `<h3>${name}</h3>`);
  assertStringIncludes(html, `export OPENAI_BASE_URL=${gateway.url}/v1 OPENAI_API_KEY=$SLUICE_API_KEY`);
  assertStringIncludes(html, "claude --model sluice/echo");
  assertStringIncludes(html, "sk-sluice-…");
  assertNotMatch(html, /sk-sluice-\w/);
  assertNotMatch(html, /may not use/);
  assertEquals(html.match(/class="copy quiet" hidden/g)?.length, CLIENTS.length + 1);
});

Deno.test("the page of clients writes what is typed as text, for its shell or its file", async () => {
  await using gateway = startConsole({
    admin: { key: { env: "ADMIN_KEY" }, listen: { hostname: "127.0.0.1", port: 9 } },
  });
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  const evil = `a'"; </pre><script>alert(1)</script>\nrm`;
  const { html } = await browser.get(`/connect?${new URLSearchParams({ key: evil, model: evil })}`);
  assertNotMatch(html, /<script>alert/);
  assertMatch(html, /# a'&quot;; &lt;\/pre>&lt;script>alert\(1\)&lt;\/script> rm</, "a comment has one line");
  assertStringIncludes(html, "claude --model 'a'\\''&quot;; ");
  assertStringIncludes(html, "model = &quot;a'\\&quot;; ");
  assertStringIncludes(html, "Cannot find key");
  // The clients' listener is not the console's.
  assertStringIncludes(html, "OPENAI_BASE_URL=http://127.0.0.1:8790/v1");
  assertStringIncludes((await browser.get("/connect?key=speechless&model=sluice/echo")).html, "sk-sluice-…");
  for (const origin of ["javascript:alert(1)", "http://$(reboot)/", "http://`id`"]) {
    assertEquals((await browser.get(`/connect?${new URLSearchParams({ origin })}`)).status, 400, origin);
  }
  assertStringIncludes((await browser.get("/connect?origin=https://llm.example/x")).html, "=https://llm.example/v1");
});

Deno.test("keys are offered after many that are revoked", async () => {
  await using gateway = startConsole();
  for (let count = 0; count < 210; count++) {
    const { id } = await gateway.addKey();
    await gateway.store.keys.revoke(id, 1);
  }
  const { id } = await gateway.addKey();
  const name = (await gateway.store.keys.find(id))?.name ?? "";
  const browser = await signedIn(gateway, VIEWER_KEY);
  assertStringIncludes((await browser.get("/connect")).html, `<option value="${name}"`);
});
