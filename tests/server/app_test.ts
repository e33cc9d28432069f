import { assert, assertEquals, assertMatch, assertNotMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { ACCESS } from "../../lib/access/access_table.ts";
import { createApp } from "../../lib/server/app.ts";
import { exchange, head, post, startServer, testGateway } from "./serve.ts";
import { readRouteFiles } from "../../tools/routes.ts";
import { until } from "../support/soon.ts";

Deno.test("createApp() rejects routes without an access row and rows without a route", () => {
  const gateway = () => testGateway({}, () => {}).gateway;
  const route = { path: "/a", handlers: { GET: () => new Response() } };
  assertThrows(() => createApp({ routes: [route], access: {}, gateway }), RangeError, 'Cannot serve "GET /a"');
  const access = { "GET /a": { credential: "none" }, "GET /b": { credential: "none" } } as const;
  assertThrows(() => createApp({ routes: [route], access, gateway }), RangeError, 'the access row "GET /b"');
  const open = { "GET /a": { credential: "bearer" } } as const;
  assertThrows(() => createApp({ routes: [route], access: open, gateway }), RangeError, "names no endpoint");
  createApp({ routes: [route], access: { "GET /a": { credential: "none" } }, gateway });
});

Deno.test("routes and access table match", async () => {
  const files = await readRouteFiles(new URL("../../routes", import.meta.url).pathname);
  const routes = files.map(({ file, methods }) => ({
    path: `/${file.slice(0, -".ts".length)}`,
    handlers: Object.fromEntries(methods.map((method) => [method, () => new Response()])),
  }));
  createApp({ routes, access: ACCESS, gateway: () => testGateway({}, () => {}).gateway });
});

Deno.test("unknown paths and methods get errors in the shape of the prefix", async () => {
  await using server = startServer();
  const openai = await exchange(server.port, [head("GET /v1/nothing")]);
  assertEquals(openai.status, 404);
  assertEquals(JSON.parse(openai.body).error.code, "not_found");
  // The most common cause is a wrong base URL in a client.
  assertMatch(
    JSON.parse(openai.body).error.message,
    /base URL of OpenAI clients ends with \/v1, .*\/anthropic, .*port$/,
  );
  assertMatch(openai.headers.get("x-request-id") ?? "", /^req_[a-z0-9]+$/);
  assertEquals(openai.headers.get("request-id"), null);

  for (const target of ["/anthropic/nothing", "/anthropic", "/anthropic?x=1", "/anthropic/%zz"]) {
    const native = await exchange(server.port, [head(`GET ${target}`)]);
    const body = JSON.parse(native.body);
    assertEquals([native.status, body.type], [target.includes("%") ? 400 : 404, "error"], target);
    assertEquals(body.request_id, native.headers.get("request-id"));
    assertEquals(native.headers.get("x-request-id"), native.headers.get("request-id"));
  }
  const lookalike = await exchange(server.port, [head("GET /anthropicx/v1")]);
  assertEquals(JSON.parse(lookalike.body).type, undefined);
});

Deno.test("an unsupported method is 405 with Allow", async () => {
  await using server = startServer();
  const cases: [start: string, status: number, allow: string | null][] = [
    ["POST /public", 405, "GET, HEAD"],
    ["OPTIONS /public", 405, "GET, HEAD"],
    ["PATCH /v1/things/acme", 405, "DELETE, GET, HEAD"],
    ["GET /v1/echo", 405, "POST"],
    ["HEAD /v1/echo", 405, "POST"],
    ["FOO /v1/echo", 405, "POST"],
    ["get /public", 405, "GET, HEAD"],
    ["TRACE /public", 405, "GET, HEAD"],
    ["TRACE /v1/echo", 405, "POST"],
    ["TRACE /nothing", 404, null],
    ["CONNECT localhost:80", 405, "DELETE, GET, HEAD, PATCH, POST, PUT"],
  ];
  for (const [start, status, allow] of cases) {
    const response = await exchange(server.port, [head(start, { connection: "close" })]);
    assertEquals([response.status, response.headers.get("allow")], [status, allow], start);
  }
});

Deno.test("HEAD has the headers of GET and no body, and cancels its production", async () => {
  await using server = startServer();
  const bearer = { authorization: `Bearer ${server.key}` };
  const get = await exchange(server.port, [head("GET /v1/things", bearer)]);
  const again = await exchange(server.port, [head("HEAD /v1/things", { ...bearer, connection: "close" })]);
  assertEquals(again.body, "");
  for (const name of ["content-type", "content-length", "etag", "cache-control"]) {
    assertEquals(again.headers.get(name), get.headers.get(name), name);
  }
  assertEquals(get.headers.get("content-length"), String(get.body.length));

  const endless = await exchange(server.port, [head("HEAD /v1/endless", { connection: "close" })]);
  assertEquals([endless.status, endless.body, endless.headers.get("content-length")], [200, "", null]);
  assertEquals(server.observed.cancelled.length, 1);
});

Deno.test("a WebSocket upgrade is rejected on known paths before the key is checked", async () => {
  await using server = startServer();
  const upgrade = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
  for (const path of ["/v1/echo", "/v1/things"]) {
    const response = await exchange(server.port, [head(`GET ${path}`, upgrade)]);
    assertEquals(response.status, 426, path);
    assertEquals(response.headers.get("connection"), "upgrade");
    assert(response.headers.has("upgrade"));
    assertEquals(JSON.parse(response.body).error.code, "upgrade_required");
  }
  assertEquals((await exchange(server.port, [head("GET /v1/nothing", upgrade)])).status, 404);
});

Deno.test("an exception in a handler becomes an error body, and only the log has its cause", async () => {
  await using server = startServer();
  const response = await exchange(server.port, [head("GET /v1/fail")]);
  assertEquals(response.status, 500);
  assertNotMatch(response.body, /secret|TypeError|at /);
  const [entry] = server.observed.logs;
  assertEquals([entry?.event, entry?.kind, entry?.cause], ["request_failed", "internal", "TypeError"]);
  assertEquals(`req_${entry?.request_id}`, response.headers.get("x-request-id"));
  assertStringIncludes(String(entry?.stack), "serve.ts");
  assertNotMatch(JSON.stringify(server.observed.logs), /secret/);

  const limited = await exchange(server.port, [
    head("POST /v1/fail", { "x-api-key": server.key, "content-length": "0" }),
  ]);
  assertEquals([limited.headers.get("retry-after"), limited.headers.get("retry-after-ms")], ["2", "1500"]);
});

Deno.test("a client that disconnects during a handler is not an error", async () => {
  await using server = startServer();
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  await connection.write(new TextEncoder().encode(head("GET /v1/wait")));
  await until("the log line", () => server.observed.logs.length === 1);
  connection.close();
  assertEquals((await exchange(server.port, [head("GET /public")])).status, 200);
  assertEquals(server.observed.logs.map(({ event }) => event), ["stopping"]);
});

Deno.test("no request header is repeated in the response", async () => {
  await using server = startServer();
  const sent = {
    "x-request-id": "req_mine",
    "request-id": "canary1",
    "x-canary": "canary2",
    origin: "https://canary3.example",
    traceparent: "canary4",
    cookie: "canary5=1",
    "user-agent": "canary6",
  };
  for (const start of ["GET /public", "GET /nothing", "GET /v1/things", "OPTIONS /public", "GET /anthropic/x"]) {
    const { headers, body } = await exchange(server.port, [head(start, sent)]);
    assertNotMatch(`${JSON.stringify([...headers])}${body}`, /canary|req_mine/, start);
  }
});

Deno.test("unusual framing gets one answer or a closed connection, and the server continues", async () => {
  await using server = startServer();
  const line = "POST /v1/echo HTTP/1.1\r\nHost: localhost\r\n";
  const oddities = [
    `${line}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}`,
    `${line}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
    `${line}Content-Length: -2\r\n\r\n{}`,
    `${line}Content-Length: +2\r\n\r\n{}`,
    `${line}Content-Length: 0x2\r\n\r\n{}`,
    `${line}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`,
    `${line}Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n`,
    `${line}Transfer-Encoding: xchunked\r\n\r\n{}`,
    `${line}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
    `${line}X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}`,
    `${line}X: a\u0000b\r\nContent-Length: 2\r\n\r\n{}`,
    "GET /public HTTP/1.1\nHost: localhost\n\n",
    "GET /public\r\n\r\n",
    "GET /public HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "\r\n\r\nGET /public HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "\u0016\u0003\u0001\u0002\u0000",
    `GET /${"a".repeat(100_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  ];
  for (const text of oddities) {
    const closing = text.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    // The server waits for the rest where a line ends in LF alone.
    const { status } = await exchange(server.port, [closing], { patienceMs: 2_000 });
    assert(status < 500, `${status}: ${JSON.stringify(text.slice(0, 120))}`);
    assertEquals((await exchange(server.port, [post("/v1/echo", "{}")])).status, 200);
  }
  assertEquals(server.observed.logs, []);
});
