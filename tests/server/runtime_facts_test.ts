/*
 * Assumptions of the gateway's code about the runtime. If a test fails after an upgrade of Deno, the comment above it
 * names the code to review.
 */
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";

/** Sends bytes to a server and reads until it closes the connection. */
async function exchange(port: number, text: string): Promise<string> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(new TextEncoder().encode(text));
  let answer = "";
  const bytes = new Uint8Array(4096);
  for (let count = await connection.read(bytes); count !== null; count = await connection.read(bytes)) {
    answer += new TextDecoder().decode(bytes.subarray(0, count));
  }
  return answer;
}

function serve(handler: (request: Request) => Response | Promise<Response>): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, handler);
}

// lib/server/target.ts reads the path from the URL after the host, and validates `Host` before.
Deno.test("runtime: Host determines the URL of a request", async () => {
  await using server = serve((request) => new Response(request.url));
  const answer = await exchange(
    server.addr.port,
    "GET /v1/models HTTP/1.1\r\nHost: x/admin/keys?\r\nConnection: close\r\n\r\n",
  );
  assertMatch(answer, /http:\/\/x\/admin\/keys\?\/v1\/models/);
});

// lib/access/authenticate.ts treats a header with ", " as one that was sent twice.
Deno.test("runtime: repeated headers arrive joined by a comma and a space", async () => {
  await using server = serve(({ headers }) => new Response(headers.get("x-api-key")));
  const answer = await exchange(
    server.addr.port,
    "GET / HTTP/1.1\r\nHost: x\r\nx-api-key: a\r\nx-api-key: b\r\nConnection: close\r\n\r\n",
  );
  assertMatch(answer, /a, b$/);
});

// lib/upstreams follows no redirect, because fetch does not remove all credentials.
Deno.test("runtime: fetch forwards x-api-key to another origin", async () => {
  const got = Promise.withResolvers<string | null>();
  await using other = serve(({ headers }) => {
    got.resolve(`${headers.get("x-api-key")} ${headers.get("authorization")}`);
    return new Response();
  });
  await using first = serve(() => Response.redirect(`http://localhost:${other.addr.port}/`, 302));
  const headers = { "x-api-key": "secret", authorization: "Bearer secret" };
  await (await fetch(`http://127.0.0.1:${first.addr.port}/`, { headers })).bytes();
  assertEquals(await got.promise, "secret null");
});

// lib/request treats an aborted signal as a disconnect: "no-legacy-abort" in deno.json.
Deno.test("runtime: the signal of an answered request does not abort, that of a disconnected client does", async () => {
  const signals: AbortSignal[] = [];
  const arrived = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  await using server = serve(async (request) => {
    signals.push(request.signal);
    if (!request.url.endsWith("/wait")) return new Response("answered");
    request.signal.addEventListener("abort", () => left.resolve(), { once: true });
    arrived.resolve();
    await left.promise;
    return new Response();
  });
  const origin = `http://127.0.0.1:${server.addr.port}`;
  await (await fetch(origin)).text();
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.addr.port });
  await connection.write(new TextEncoder().encode("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
  await arrived.promise;
  connection.close();
  await left.promise;
  assertEquals(signals.map(({ aborted }) => aborted), [false, true]);
});

// docs/reference/vendors.md documents this. If this fails, such disconnects are noticed: remove the test and the note
// in the document.
Deno.test("runtime: a disconnect before the answer is noticed only if the request arrived in one short piece", async () => {
  const signals = new Map<number, AbortSignal>();
  const left = Promise.withResolvers<void>();
  let arrived = Promise.withResolvers<void>();
  await using server = serve(async (request) => {
    const length = (await request.bytes()).length;
    signals.set(length, request.signal);
    if (length === 10) request.signal.addEventListener("abort", () => left.resolve(), { once: true });
    arrived.resolve();
    await left.promise;
    return new Response();
  });
  // The short one is sent last: when its disconnect is noticed, the other one had enough time.
  for (const length of [2_000, 10]) {
    arrived = Promise.withResolvers();
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.addr.port });
    const head = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`;
    await connection.write(new TextEncoder().encode(head + "x".repeat(length)));
    await arrived.promise;
    connection.close();
  }
  await left.promise;
  assertEquals([...signals].map(([length, { aborted }]) => [length, aborted]), [[2_000, false], [10, true]]);
});

// The parsers of lib/json/json.ts reject duplicate members, and keep such a number as its text.
Deno.test("runtime: JSON.parse uses the last of two members, and turns large numbers into Infinity", () => {
  assertEquals(JSON.parse('{"model":"a","model":"b"}'), { model: "b" });
  assertEquals(JSON.parse("[1e400]"), [Infinity]);
  assertEquals(JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`).length, 1);
});

// lib/store reads integers as bigint, and stores amounts where they fit, in strict tables.
Deno.test("runtime: SQLite sums overflow to floats, and its numbers are not safe integers", () => {
  using db = new DatabaseSync(":memory:");
  assertThrows(() => db.prepare("SELECT 9007199254740993 AS large").get(), RangeError);
  const large = db.prepare("SELECT 9223372036854775807 AS large");
  large.setReadBigInts(true);
  assertEquals(large.get()?.large, 9_223_372_036_854_775_807n);
  assertEquals(db.prepare("SELECT typeof(9223372036854775807 + 1) AS kind").get()?.kind, "real");
  assertThrows(() => db.prepare("SELECT sum(a) FROM (SELECT 9223372036854775807 AS a UNION ALL SELECT 1)").get());
  assertThrows(() => db.exec("CREATE TABLE t (a INTEGER) STRICT; INSERT INTO t VALUES (0.5)"));
});

// docs/explanation/security.md says that Deno's server has no time limit for a head: a proxy in front needs one.
Deno.test("runtime: the server waits indefinitely for a head", async () => {
  await using server = serve(() => new Response());
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.addr.port });
  await connection.write(new TextEncoder().encode("GET / HTTP/1.1\r\nHost: x"));
  const closed = connection.read(new Uint8Array(1)).then(() => true, () => true);
  const waited = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => waited.resolve(false), 300);
  assertEquals(await Promise.race([closed, waited.promise]), false);
  clearTimeout(timer);
  await connection.write(new TextEncoder().encode("\r\nConnection: close\r\n\r\n"));
  assert(await closed);
});

// lib/upstreams counts decompressed bytes where it requests compression.
Deno.test("runtime: fetch decompresses what it asked for, and nothing if told not to", async () => {
  const packed = await new Response(new Blob(["hello"]).stream().pipeThrough(new CompressionStream("gzip"))).bytes();
  await using server = serve(() => new Response(packed, { headers: { "content-encoding": "gzip" } }));
  const url = `http://127.0.0.1:${server.addr.port}/`;
  assertEquals(await (await fetch(url)).text(), "hello");
  assertEquals(await (await fetch(url, { headers: { "accept-encoding": "identity" } })).bytes(), packed);
});

// lib/upstreams keeps byte order marks when it decodes piece by piece, and drops the one at the beginning itself.
Deno.test("runtime: a streaming decoder that strips byte order marks also strips them at later pieces", () => {
  const pieces = ["ab", "\ufeffc", "\ufeffd"].map((text) => new TextEncoder().encode(text));
  const decode = (decoder: TextDecoder) => pieces.map((piece) => decoder.decode(piece, { stream: true })).join("");
  assertEquals(decode(new TextDecoder("utf-8", { ignoreBOM: true })), "ab\ufeffc\ufeffd");
  // It should be the same, because the mark is not at the beginning.
  assertEquals(decode(new TextDecoder()), "abc\ufeffd");
});
