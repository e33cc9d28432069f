import { assertEquals, assertMatch, assertObjectMatch, assertThrows } from "@std/assert";
import { createLimitError } from "../../lib/limits/errors.ts";
import { type LimitHeaderStyle, writeLimitHeaders } from "../../lib/limits/headers.ts";
import type { LimitDecision, LimitRequest, LimitStatus, LimitUnit } from "../../lib/limits/limiter.ts";
import { anthropicErrorReply, openaiErrorReply } from "../../lib/protocols/error_bodies.ts";

const NOW = Date.UTC(2027, 0, 1);

function limitRequest(unit: LimitUnit, change: Partial<LimitRequest> = {}): LimitRequest {
  return { name: "key:key_1", unit, limit: 60, cost: 1, reportOnly: false, ...change };
}

function status(
  unit: LimitUnit,
  { remaining = 59, resetMs = 12, ...change }: Partial<LimitRequest & LimitStatus> = {},
): LimitStatus {
  return { limitRequest: limitRequest(unit, change), remaining, resetMs };
}

function refusal(over: LimitRequest[], retryAfterMs: number): LimitDecision {
  return {
    admitted: false,
    statuses: over.map((limitRequest) => ({ limitRequest, remaining: 0, resetMs: 60_000 })),
    exceeded: over,
    retryAfterMs,
  };
}

function headersOf(statuses: LimitStatus[], style: LimitHeaderStyle = "openai"): Record<string, string> {
  return Object.fromEntries(writeLimitHeaders(statuses, { now: () => NOW, style }));
}

Deno.test("writeLimitHeaders() writes requests and tokens under the names of each client family", () => {
  const statuses = [status("requests"), status("tokens", { limit: 1000, remaining: 0, resetMs: 60_500 })];
  assertEquals(headersOf(statuses, "openai"), {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-reset-requests": "12ms",
    "x-ratelimit-limit-tokens": "1000",
    "x-ratelimit-remaining-tokens": "0",
    "x-ratelimit-reset-tokens": "1m0.5s",
  });
  assertEquals(headersOf(statuses, "anthropic"), {
    "anthropic-ratelimit-requests-limit": "60",
    "anthropic-ratelimit-requests-remaining": "59",
    "anthropic-ratelimit-requests-reset": "2027-01-01T00:00:01Z",
    "anthropic-ratelimit-tokens-limit": "1000",
    "anthropic-ratelimit-tokens-remaining": "0",
    "anthropic-ratelimit-tokens-reset": "2027-01-01T00:01:01Z",
    "anthropic-ratelimit-unified-status": "allowed",
    "anthropic-ratelimit-unified-reset": String(NOW / 1000 + 61),
  });
});

Deno.test("writeLimitHeaders() reports a refusal and its duration to Anthropic's clients in the unified headers", () => {
  const write = (statuses: LimitStatus[], style: LimitHeaderStyle) =>
    Object.fromEntries(writeLimitHeaders(statuses, { now: () => NOW, style, refusedMs: 1_500 }));
  const unified = {
    "anthropic-ratelimit-unified-status": "rejected",
    "anthropic-ratelimit-unified-reset": String(NOW / 1000 + 2),
  };
  const headers = write([status("requests", { remaining: 0, resetMs: 60_000 })], "anthropic");
  assertObjectMatch(headers, { ...unified, "anthropic-ratelimit-requests-reset": "2027-01-01T00:01:00Z" });
  // A limit of concurrency has no headers of its own; an upstream's is not among the statuses.
  assertEquals(write([status("concurrency", { remaining: 0 })], "anthropic"), unified);
  assertEquals(write([], "anthropic"), unified);
  assertEquals(write([], "openai"), {});
});

Deno.test("writeLimitHeaders() shows the limit with the least remaining, then the smallest, without report-only limits", () => {
  const shown = (...statuses: LimitStatus[]) => {
    const headers = headersOf(statuses);
    return [headers["x-ratelimit-limit-requests"], headers["x-ratelimit-remaining-requests"]];
  };
  const [one, two, three] = [
    status("requests", { limit: 100, remaining: 5 }),
    status("requests", { limit: 50, remaining: 7 }),
    status("requests", { limit: 70, remaining: 5 }),
  ];
  assertEquals(shown(two, one), ["100", "5"]);
  assertEquals(shown(one, two, three), ["70", "5"]);
  assertEquals(shown(two, status("requests", { limit: 1, remaining: 0, reportOnly: true })), ["50", "7"]);
  assertEquals(headersOf([status("requests", { reportOnly: true }), status("concurrency")]), {});
  assertEquals(headersOf([]), {});
});

Deno.test("writeLimitHeaders() formats times as OpenAI does, never too early", () => {
  const cases: [ms: number, text: string, moment: string][] = [
    [0, "0s", "00:00:00"],
    [0.2, "1ms", "00:00:01"],
    [999, "999ms", "00:00:01"],
    [1000, "1s", "00:00:01"],
    [1500, "1.5s", "00:00:02"],
    [59_999, "59.999s", "00:01:00"],
    [60_000, "1m0s", "00:01:00"],
    [360_000, "6m0s", "00:06:00"],
    [5_400_000, "1h30m0s", "01:30:00"],
  ];
  for (const [resetMs, text, moment] of cases) {
    const statuses = [status("tokens", { resetMs })];
    assertEquals(headersOf(statuses, "openai")["x-ratelimit-reset-tokens"], text);
    assertEquals(headersOf(statuses, "anthropic")["anthropic-ratelimit-tokens-reset"], `2027-01-01T${moment}Z`);
  }
});

Deno.test("createLimitError() names owner and amount of the limit, and the time to retry", () => {
  const cases: [limitRequest: LimitRequest, type: string, text: string][] = [
    [limitRequest("requests"), "requests", "this API key is limited to 60 requests per minute"],
    [limitRequest("tokens", { name: "group:team" }), "tokens", 'group "team" is limited to 60 tokens per minute'],
    [
      limitRequest("concurrency", { name: "model:acme/one" }),
      "requests",
      'model "acme/one" is limited to 60 concurrent requests',
    ],
    [limitRequest("requests", { limit: 1 }), "requests", "this API key is limited to 1 request per minute"],
    [limitRequest("concurrency", { limit: 1 }), "requests", "this API key is limited to 1 concurrent request"],
  ];
  for (const [over, type, text] of cases) {
    const error = createLimitError(refusal([over], 1_234));
    assertEquals(error.message, `Rate limit reached: ${text}. Please try again in 1.234s`);
    // Codex parses this part.
    assertMatch(error.message, /Please try again in (\d+(?:\.\d+)?)(s|ms)/);
    const reply = openaiErrorReply(error, "1");
    assertEquals(reply.body, { error: { message: error.message, type, param: null, code: "rate_limit_exceeded" } });
    assertEquals([reply.status, reply.headers["retry-after"], reply.headers["retry-after-ms"]], [429, "2", "1234"]);
    const { status, headers, body } = anthropicErrorReply(error, "1");
    assertEquals([status, headers["retry-after"]], [429, "2"]);
    assertEquals(body.error, { type: "rate_limit_error", message: error.message });
  }
});

Deno.test("createLimitError() keeps retry-after below the 60 seconds after which Claude Code gives up", () => {
  const error = createLimitError(refusal([limitRequest("requests")], 60_400));
  const { headers } = anthropicErrorReply(error, "1");
  assertEquals([headers["retry-after"], headers["retry-after-ms"]], ["60", "60400"]);
  assertEquals(openaiErrorReply(error, "1").headers["retry-after"], "61");
});

Deno.test("createLimitError() names the first of several refusing limits, without report-only ones", () => {
  const over = [
    limitRequest("tokens", { reportOnly: true }),
    limitRequest("tokens", { name: "group:team" }),
    limitRequest("requests"),
  ];
  const error = createLimitError(refusal(over, 400));
  assertEquals([error.code, error.retryAfterMs], ["rate_limit_tokens", 400]);
  assertMatch(error.message, /group "team".* in 0.4s$/);
  assertThrows(() => createLimitError(refusal([limitRequest("tokens", { reportOnly: true })], 0)), RangeError);
});

Deno.test("createLimitError() is final if no wait helps", () => {
  const error = createLimitError(refusal([limitRequest("tokens", { limit: 1000, cost: 5000 })], Infinity));
  assertEquals(
    error.message,
    "This request needs 5000 tokens, but this API key is limited to 1000 tokens per minute",
  );
  const { headers } = openaiErrorReply(error, "1");
  assertEquals([headers["retry-after"], headers["x-should-retry"]], [undefined, "false"]);
});
