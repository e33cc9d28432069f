import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { jsonWithEtag } from "../../lib/server/json_response.ts";
import type { Json } from "../../lib/json/mod.ts";
import { workedMs } from "../support/turns.ts";

function ask(body: Json, ifNoneMatch?: string): Promise<Response> {
  return jsonWithEtag(
    new Request("http://localhost/", ifNoneMatch === undefined ? {} : { headers: { "if-none-match": ifNoneMatch } }),
    body,
  );
}

Deno.test("jsonWithEtag() derives the ETag from the body alone", async () => {
  const first = await ask({ a: "\u00e9" });
  const etag = first.headers.get("etag") ?? "";
  assertMatch(etag, /^(W\/)?"[^"]+"$/);
  assertEquals(first.headers.get("cache-control"), "private, no-cache");
  assertEquals(first.headers.get("content-type"), "application/json");
  assertEquals(first.headers.get("content-length"), "10");
  assertEquals(await first.text(), '{"a":"\u00e9"}');
  assertEquals((await ask({ a: "\u00e9" })).headers.get("etag"), etag);
  assertNotEquals((await ask({ a: 1 })).headers.get("etag"), etag);
});

Deno.test("jsonWithEtag() answers 304 without a body for a current ETag", async () => {
  const etag = (await ask([1])).headers.get("etag") ?? "";
  for (
    const [sent, status] of [[etag, 304], [`"other", ${etag}`, 304], [`W/${etag}`, 304], ["*", 304], ['"other"', 200], [
      "",
      200,
    ]] as const
  ) {
    const response = await ask([1], sent);
    assertEquals(response.status, status, sent);
    assertEquals(response.headers.get("etag"), etag);
    assertEquals(response.headers.get("cache-control"), "private, no-cache");
    assertEquals(await response.text(), status === 304 ? "" : "[1]");
  }
});

Deno.test("jsonWithEtag() reads a header of spaces in linear time", async () => {
  const before = workedMs();
  assertEquals((await ask([1], `"a"${" ".repeat(60_000)}"b"`)).status, 200);
  assert(workedMs() - before < 1_000);
});
