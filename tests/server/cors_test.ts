import { assertEquals } from "@std/assert";
import { exchange, head, startServer } from "./serve.ts";

const ORIGIN = "https://app.example.com";
const FILE = { cors: { origins: ["http://localhost:3000", ORIGIN] } };
const PREFLIGHT = { "access-control-request-method": "POST", "access-control-request-headers": "x-canary" };

/** The headers that browsers check for CORS. */
function corsOf(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith("access-control-") || name === "vary"));
}

Deno.test("without configured origins no response has CORS headers", async () => {
  await using server = startServer();
  for (
    const start of [
      "GET /public",
      "GET /v1/things",
      "GET /nothing",
      "OPTIONS /public",
      "OPTIONS /v1/echo",
      "GET /v1/fail",
    ]
  ) {
    for (const origin of [ORIGIN, "null", "*"]) {
      const response = await exchange(server.port, [head(start, { origin, ...PREFLIGHT })]);
      assertEquals(corsOf(response.headers), {}, `${start} ${origin}`);
      if (start === "OPTIONS /public") assertEquals(response.status, 405);
    }
  }
});

Deno.test("a listed origin passes the preflight and can read every response", async () => {
  await using server = startServer({ file: FILE });
  const flight = await exchange(server.port, [head("OPTIONS /v1/echo", { origin: ORIGIN, ...PREFLIGHT })]);
  assertEquals(flight.status, 204);
  assertEquals(flight.headers.get("access-control-allow-origin"), ORIGIN);
  assertEquals(flight.headers.get("access-control-allow-methods"), "POST");
  assertEquals(flight.headers.get("access-control-allow-headers"), "authorization, x-api-key, content-type, *");
  assertEquals(flight.headers.get("access-control-max-age"), "7200");
  assertEquals(flight.headers.get("vary"), "origin");
  for (
    const [start, status] of [["GET /public", 200], ["GET /v1/things", 401], ["GET /nothing", 404], [
      "GET /v1/fail",
      500,
    ]] as const
  ) {
    const response = await exchange(server.port, [head(start, { origin: ORIGIN })]);
    assertEquals(response.status, status);
    assertEquals(corsOf(response.headers), {
      "access-control-allow-origin": ORIGIN,
      "access-control-expose-headers":
        "x-request-id, request-id, retry-after, retry-after-ms, x-should-retry, x-sluice-dropped, x-sluice-cost, " +
        "x-sluice-image-size, x-sluice-idempotent-replay, x-sluice-max-tokens, x-sluice-model, x-sluice-upstream, " +
        "x-sluice-attempts, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, " +
        "x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, " +
        "anthropic-ratelimit-requests-limit, anthropic-ratelimit-requests-remaining, " +
        "anthropic-ratelimit-requests-reset, anthropic-ratelimit-tokens-limit, anthropic-ratelimit-tokens-remaining, " +
        "anthropic-ratelimit-tokens-reset, anthropic-ratelimit-unified-status, anthropic-ratelimit-unified-reset, " +
        "x-sluice-upstream-request-id",
      vary: "origin",
    }, start);
  }
});

Deno.test("CORS allows an origin only if scheme, host and port are equal", async () => {
  await using server = startServer({ file: FILE });
  for (
    const origin of [
      "https://app.example.com.evil.com",
      "https://evil.com",
      "http://app.example.com",
      "https://app.example.com:444",
      "https://APP.example.com",
      "null",
      `${ORIGIN}, https://evil.com`,
    ]
  ) {
    for (const start of ["GET /public", "OPTIONS /public"]) {
      const response = await exchange(server.port, [head(start, { origin, ...PREFLIGHT })]);
      assertEquals(corsOf(response.headers), { vary: "origin" }, origin);
      assertEquals(response.status, start === "GET /public" ? 200 : 405);
    }
  }
});

Deno.test("OPTIONS without a preflight is 405, even for a listed origin", async () => {
  await using server = startServer({ file: FILE });
  assertEquals((await exchange(server.port, [head("OPTIONS /public", { origin: ORIGIN })])).status, 405);
});
