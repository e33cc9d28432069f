import { assert, assertEquals, assertMatch, assertNotMatch, assertStringIncludes } from "@std/assert";
import { freeEntryOf } from "../billing/reports/entries.ts";
import { ADMIN_KEY, VIEWER_KEY } from "../support/keyed_gateway.ts";
import { Browser, signedIn, startConsole } from "./browser.ts";
import { REQUEST_PARAMETERS } from "../../lib/billing/reports/requests.ts";
import { SCRIPTS } from "../../lib/console/scripts.ts";
import { plainModel } from "../support/plain_model.ts";

const ECHO = {
  models: [plainModel({ id: "acme/echo", pricing: { prompt: "0.001", completion: "0.002" } })],
};
const HELLO = { model: "acme/echo", max_tokens: 16, messages: [{ role: "user", content: "one two" }] };

Deno.test("the list of requests is the same as CSV, of all pages and with the page's filters", async () => {
  await using gateway = startConsole();
  const at = Date.now() - 10_000;
  const hostile = '=cmd|"<script>alert(1)</script>';
  await gateway.store.ledger.append([
    ...Array.from({ length: 1_500 }, (_, index) => freeEntryOf({ id: `r${index}`, at: at + index, model: "acme/a" })),
    freeEntryOf({ id: "evil", at, model: hostile }),
  ]);
  const browser = new Browser(gateway);
  await browser.signIn(VIEWER_KEY);
  const list = await browser.get(`/requests?model=${encodeURIComponent(hostile)}`);
  assertNotMatch(list.html, /<script>alert/);
  const shown = [...list.html.matchAll(/<(?:input|select)[^>]* name="(\w+)"/g)].map(([, name]) => name)
    .filter((name) => name !== "csrf");
  const filters = REQUEST_PARAMETERS.filter((name) => !["limit", "cursor", "after_seq"].includes(name));
  assertEquals(shown.toSorted(), filters.toSorted(), "no filter is lost when the form is sent again");
  assertStringIncludes(list.html, `requests.csv?${new URLSearchParams({ model: hostile })}"`);
  const all = await browser.get("/requests.csv?limit=3");
  assertEquals(all.headers.get("content-type"), "text/csv; charset=utf-8");
  assertMatch(all.headers.get("content-disposition") ?? "", /^attachment; filename="requests.csv"$/);
  const lines = all.html.trimEnd().split("\r\n");
  assertEquals(lines.length, 1 + 1_501, "every request, once");
  assertMatch(lines[0] ?? "", /^id,seq,at,key,/);
  assertEquals(new Set(lines).size, lines.length);
  const own = await browser.get(`/requests.csv?model=${encodeURIComponent(hostile)}`);
  assertEquals(own.html.trimEnd().split("\r\n").length, 2);
  assertStringIncludes(own.html, `"'=cmd|""<script>`, "no formula for a spreadsheet");
  assertEquals((await browser.get("/requests.csv?status=many")).status, 400);
});

Deno.test("the console streams new requests only to a session", async () => {
  await using gateway = startConsole(ECHO);
  const stranger = new Browser(gateway);
  assertEquals((await stranger.get("/requests/stream")).path, "/sign-in");
  const browser = new Browser(gateway);
  await browser.signIn(VIEWER_KEY);
  const page = await browser.get("/requests?model=acme%2Fecho&sort=time");
  const path = /data-stream="([^"]+)"/.exec(page.html)?.[1] ?? "";
  assertEquals(path, "/admin/console/requests/stream?model=acme%2Fecho");
  const response = await fetch(gateway.adminUrl + path, { headers: { cookie: browser.cookie } });
  assertEquals(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assertStringIncludes(response.headers.get("content-security-policy") ?? "", "default-src 'none'");
  assert(response.body !== null);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const answer = await gateway.ask("chat", HELLO);
  await answer.body?.cancel();
  const id = answer.headers.get("x-request-id") ?? "none";
  for (let text = ""; !text.includes(`"${id}"`);) {
    const { value, done } = await reader.read();
    assert(!done);
    text += value;
  }
  await reader.cancel();
  for (const name of ["live.js", "copy.js"]) {
    const script = await browser.get(`/assets/${name}`);
    assertEquals([script.status, script.headers.get("content-type")], [200, "text/javascript; charset=utf-8"]);
    assertNotMatch(script.html, /innerHTML|eval|https?:/);
  }
});

Deno.test("the live list loads again for a request that arrives while it loads", async () => {
  const events = new Map<string, () => void>();
  const answers: ((answer: undefined) => void)[] = [];
  let press = () => {};
  const button = {
    dataset: {},
    setAttribute() {},
    addEventListener: (_: string, click: () => void) => press = click,
  };
  class Stream {
    addEventListener(name: string, listener: () => void): void {
      events.set(name, listener);
    }
    close(): void {}
  }
  const load = () => new Promise<undefined>((resolve) => answers.push(resolve));
  new Function("document", "EventSource", "fetch", "location", "setTimeout", SCRIPTS["live.js"])(
    { getElementById: () => button },
    Stream,
    load,
    {},
    (act: () => void) => {
      queueMicrotask(act);
      return 1;
    },
  );
  const settle = () => new Promise((resolve) => setTimeout(resolve));
  press();
  await settle();
  assertEquals(answers.length, 1);
  events.get("request")?.();
  events.get("request")?.();
  await settle();
  assertEquals(answers.length, 1, "one page at a time");
  answers[0]?.(undefined);
  await settle();
  assertEquals(answers.length, 2, "the requests since then");
  answers[1]?.(undefined);
  await settle();
  assertEquals(answers.length, 2);
});

Deno.test("a lost request has neither a status nor a duration", async () => {
  await using gateway = startConsole();
  await gateway.store.ledger.append([freeEntryOf({ id: "lost", ending: "lost", status: 0, totalMs: 9_000 })]);
  const browser = await signedIn(gateway, VIEWER_KEY);
  assertNotMatch((await browser.get("/requests")).html, /9 s/);
  assertMatch((await browser.get("/requests/req_lost")).html, /<dt>Status<\/dt><dd><span class="dim">–</);
});

Deno.test("a request's page has its arithmetic, its attempts over time, what was dropped, and its ids", async () => {
  await using gateway = startConsole(ECHO);
  const answer = await gateway.ask("chat", { ...HELLO, logit_bias: { 1: 2 } });
  assertEquals(answer.headers.get("x-sluice-dropped"), "logit_bias");
  await answer.body?.cancel();
  const id = answer.headers.get("x-request-id") ?? "";
  await gateway.gateway.ledger.flush();
  await gateway.store.ledger.append([freeEntryOf({
    id: "failed",
    at: Date.now(),
    attempts: 2,
    totalMs: 900,
    details: {
      reason: { code: "upstream_failed" },
      attempts: [
        { upstream: "<b>one</b>", model: "acme/echo", outcome: "failure", ms: 100, status: 500, request_id: "up-1" },
        { upstream: "two", model: "acme/echo", outcome: "failure", ms: 600, message: "<i>out</i>" },
      ],
    },
  })]);
  const browser = new Browser(gateway);
  await browser.signIn(ADMIN_KEY);
  const { html } = await browser.get(`/requests/${id}`);
  assertStringIncludes(html, `<code>${id}</code>`);
  assertStringIncludes(html, "does not support them or the key may not use them: logit_bias.");
  assertStringIncludes(html, "Charged");
  assertStringIncludes(html, 'aria-label="Attempts over time"');
  const failed = (await browser.get("/requests/req_failed")).html;
  assertNotMatch(failed, /<b>one|<i>out/);
  assertStringIncludes(failed, "pauses: 200\u00a0ms");
  assertStringIncludes(failed, "<code>up-1</code>");
  assertStringIncludes(failed, "the next target was tried");
});
