import { assertEquals, assertThrows } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { createRouteMatcher, errorShapeOf, readTarget } from "../../lib/server/route_matcher.ts";
import { exchange, startServer } from "./serve.ts";

const GOOD_HOSTS = [
  "localhost",
  "LOCALHOST:8790",
  "gateway.example.com",
  "10.0.0.1:1",
  "[::1]",
  "[::1]:8790",
  "[::ffff:10.0.0.1]:80",
  "a-b.c",
  "sluice_backend:8790",
  "x:99999",
  "a".repeat(253),
];

const BAD_HOSTS = [
  "",
  "x/v1/things/fixed?",
  "x/v1/things/fixed#",
  "x/anthropic",
  "x?",
  "x#",
  "x@evil",
  "user:pass@x",
  "[::1",
  "::1",
  "a b",
  "x:",
  "x:80:80",
  "x:123456",
  "x, y",
  "x\\y",
  "x%2fy",
  "xn--\u00e9",
  "a".repeat(254),
  "x'",
];

/** Targets with the path they must be routed by, or the status they must end in. */
const TARGETS: [target: string, expected: string[] | number][] = [
  ["/public", ["public"]],
  ["/public?x=/v1/things/fixed", ["public"]],
  ["/public?", ["public"]],
  ["/v1/things/fixed", ["v1", "things", "fixed"]],
  ["/v1/things/acme", ["v1", "things", "acme"]],
  ["/v1/things/acme%2Fmodel-1", ["v1", "things", "acme/model-1"]],
  ["/v1/things/acme/model-1:free@2+x", ["v1", "things", "acme", "model-1:free@2+x"]],
  ["/v1/things/a,b;c=d!e$f'g(h)*i&j~k", ["v1", "things", "a,b;c=d!e$f'g(h)*i&j~k"]],
  ["/v1/things/%E2%82%AC", ["v1", "things", "\u20ac"]],
  ["/v1/things/%252e%252e", ["v1", "things", "%2e%2e"]],
  ["/v1/things/%66ixed", ["v1", "things", "fixed"]],
  ["/v1/things/...", ["v1", "things", "..."]],
  ["/", 404],
  ["/nothing", 404],
  ["/public/", 404],
  ["//public", 404],
  ["/v1//things", 404],
  ["/v1/things/", 404],
  ["/v1/../public", 404],
  ["/./public", 404],
  ["/v1/%2e%2e/public", 404],
  ["/v1/%2E/things", 404],
  ["/v1/.%2e/public", 404],
  ["/PUBLIC", 404],
  ["/public%2F", 404],
  ["/public%20", 404],
  ["/anthropic/../public", 404],
  ["/v1/things/%zz", 400],
  ["/v1/things/%", 400],
  ["/v1/things/%e", 400],
  ["/v1/things/%ff", 400],
  ["/v1/things/%c0%af", 400],
  ["/v1/things/\u00e9", 400],
  ["/v1\\things", 400],
  ["/v1/things/a|b", 400],
  ["/v1/things/<a>", 400],
  ['/v1/things/"a"', 400],
  ["/v1/things/[vendor]", 400],
  ["/public#/v1/things/fixed", 400],
  ["/v1/things/{a}", 400],
];

/** The test server's answer where only the target matters. */
function expectedBody(segments: string[]): unknown {
  if (segments.length === 1) return { public: true };
  if (segments[2] === "fixed") return { fixed: true };
  return segments.length === 3 ? { vendor: segments[2] } : { vendor: segments[2], name: segments[3] };
}

Deno.test("a request is routed by its literal target, whatever its Host is", async () => {
  await using server = startServer();
  let checked = 0;
  for (const host of [...GOOD_HOSTS, ...BAD_HOSTS]) {
    const good = GOOD_HOSTS.includes(host);
    await Promise.all(TARGETS.map(async ([target, expected]) => {
      const request = `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      const { status, body } = await exchange(server.port, [request]);
      const context = `${host} ${target}`;
      if (!good) assertEquals(status, 400, context);
      else if (typeof expected === "number") assertEquals(status, expected, context);
      else {
        assertEquals(status, 200, context);
        assertEquals(
          JSON.parse(body),
          expectedBody(expected),
          context,
        );
      }
      checked++;
    }));
  }
  assertEquals(checked, (GOOD_HOSTS.length + BAD_HOSTS.length) * TARGETS.length);
  assertEquals(server.observed.logs, []);
});

Deno.test("a target in another form is 400 unless it matches the Host", async () => {
  await using server = startServer();
  const cases: [start: string, hosts: string[], status: number][] = [
    ["GET http://localhost/public", ["localhost"], 200],
    ["GET HTTP://LocalHost/public", ["localhost"], 200],
    ["GET http://evil/public", ["localhost"], 400],
    ["GET http://localhost:1/public", ["localhost"], 400],
    ["GET http://localhost.evil/public", ["localhost"], 400],
    ["GET http://user@localhost/public", ["localhost"], 400],
    ["GET http://localhost", ["localhost"], 404],
    ["GET ftp://localhost/public", ["localhost"], 400],
    ["OPTIONS *", ["localhost"], 404],
    ["GET *", ["localhost"], 400],
    ["GET public", ["localhost"], 400],
    // HTTP/2 has no Host, and the server does not tell the two versions apart.
    ["GET /public", [], 200],
    ["GET //public", [], 404],
    ["GET http://user@evil/public", [], 400],
    ["GET /public", ["localhost", "localhost"], 400],
    ["GET /public", ["a", "b"], 400],
  ];
  for (const [start, hosts, status] of cases) {
    const lines = hosts.map((host) => `Host: ${host}\r\n`).join("");
    const response = await exchange(server.port, [`${start} HTTP/1.1\r\n${lines}Connection: close\r\n\r\n`]);
    assertEquals(response.status, status, `${start} ${hosts}`);
  }
});

Deno.test("HTTP/2 requests are routed by the authority of their URL", async () => {
  await using server = startServer();
  using client = Deno.createHttpClient({ http1: false, http2: true });
  for (const [path, status] of [["/public?x=/y", 200], ["/v1/things/a%2Fb", 200], ["//public", 404]] as const) {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { client });
    assertEquals(response.status, status, `${path}: ${await response.text()}`);
  }
});

Deno.test("the shape of errors follows the start of the path, whatever the Host is", () => {
  const shapeOf = (url: string, host: string) => errorShapeOf(new Request(url, { headers: { host } }));
  assertEquals(shapeOf("http://x/anthropic/v1", "x"), "anthropic");
  assertEquals(shapeOf("http://x/v1beta?key=x", "x"), "google");
  assertEquals(shapeOf("http://x/v1beta2/models", "x"), "openai");
  assertEquals(shapeOf("http://x/%61nthropic/v1/messages", "x"), "anthropic");
  assertEquals(shapeOf("http://x/%761beta/models", "x"), "google");
  assertEquals(shapeOf("http://x/v1/models/acme/m%3AcountTokens", "x"), "google");
  assertEquals(shapeOf("http://x/anthropic/%zz", "x"), "anthropic");
  // The server puts its own address in place of an empty host.
  assertEquals(shapeOf("http://127.0.0.1:80/anthropic/v1", ""), "anthropic");
  assertEquals(shapeOf("http://127.0.0.1:80/v1beta/models", ""), "google");
  assertEquals(shapeOf("http://127.0.0.1:80/v1/anthropic", ""), "openai");
});

Deno.test("requests of Google's clients under /v1/models have the routes of /v1beta", () => {
  const handlers = { GET: () => new Response(), POST: () => new Response() };
  const paths = [
    ...["/v1/models", "/v1/models/[provider]", "/v1beta/models", "/v1beta/models/[provider]"],
    "/v1beta/models/[provider]/[model_id]",
  ];
  const findRoute = createRouteMatcher(paths.map((path) => ({ path, handlers })), {});
  const find = (url: string, headers: Record<string, string> = {}) => {
    const request = { url: `http://x${url}`, headers: new Headers({ host: "x", ...headers }) };
    return findRoute(request)?.route.path;
  };
  const google = { "x-goog-api-key": "k" };
  assertEquals(find("/v1/models"), "/v1/models");
  assertEquals(find("/v1/models", google), "/v1beta/models");
  assertEquals(find("/v1/models/a", google), "/v1beta/models/[provider]");
  assertEquals(find("/v1/models/a:free"), "/v1/models/[provider]");
  assertEquals(find("/v1/models/a:countTokens?key=k"), "/v1beta/models/[provider]");
  assertEquals(find("/v1/models/a%3AcountTokens"), "/v1beta/models/[provider]");
  assertEquals(find("/v1/models?x=a:countTokens"), "/v1/models");
  assertEquals(find("/v1/modelsx", google), undefined);
  assertEquals(find("/v1beta/a/b:generateContent", google), "/v1beta/models/[provider]/[model_id]");
  assertEquals(find("/v1beta/a/b", google), undefined);
});

Deno.test("readTarget() splits path, segments and query", () => {
  const read = (url: string, host: string) => readTarget({ url, headers: new Headers({ host }) });
  assertEquals(read("http://x/a/b%2Fc?d=e?f", "x"), { path: "/a/b%2Fc", segments: ["a", "b/c"], query: "d=e?f" });
  assertEquals(read("http://x/a", "x").query, "");
  const error = assertThrows(() => read("http://x/a//b", "x"), GatewayError);
  assertEquals(error.kind, "not_found");
});
