import { assertEquals } from "@std/assert";
import type { Json } from "../../../lib/json/mod.ts";
import { geminiUpstream } from "../../../lib/protocols/gemini/upstream.ts";

function errorOf(status: string, message = "It failed.", code = 400): Json {
  return { error: { code, message, status } };
}

Deno.test("readError() maps the status name, else the number", () => {
  const cases: [number, Json | undefined, string][] = [
    [400, errorOf("INVALID_ARGUMENT"), "invalid"],
    [400, errorOf("FAILED_PRECONDITION"), "upstream"],
    [401, errorOf("UNAUTHENTICATED"), "upstream"],
    [403, errorOf("PERMISSION_DENIED"), "upstream"],
    [404, errorOf("NOT_FOUND"), "not_found"],
    [429, errorOf("RESOURCE_EXHAUSTED"), "exhausted"],
    [500, errorOf("INTERNAL"), "upstream"],
    [503, errorOf("UNAVAILABLE"), "overloaded"],
    [504, errorOf("DEADLINE_EXCEEDED"), "timeout"],
    [500, [errorOf("RESOURCE_EXHAUSTED")], "exhausted"],
    [429, errorOf("constructor"), "exhausted"],
    [413, undefined, "too_large"],
    [404, "Not Found", "not_found"],
    [403, undefined, "upstream"],
    [503, {}, "overloaded"],
    [502, { error: null }, "upstream"],
    [400, { error: {} }, "invalid"],
    [418, [], "upstream"],
  ];
  for (const [status, body, kind] of cases) {
    assertEquals(geminiUpstream.readError(status, body).kind, kind, `${status} ${JSON.stringify(body)}`);
  }
});

Deno.test("readError() reports client errors without addresses, projects and keys", () => {
  const cases: [string, string][] = [
    ["Value is not a supported MIME type.", "Value is not a supported MIME type."],
    ["Bad value.\n* See https://ai.google.dev/limits.", "Bad value. * See [address]"],
    ["generativelanguage.googleapis.com/v1beta has no such field", "[address] has no such field"],
    ["No file in projects/my-shop-77", "No file in [account]"],
    ["Token AIzaSyD-abcdefgh1234 is odd", "Token [key] is odd"],
    ["", "The model's vendor refused this request"],
    ["x".repeat(5_000), "x".repeat(1_000)],
  ];
  for (const [message, expected] of cases) {
    assertEquals(geminiUpstream.readError(400, errorOf("INVALID_ARGUMENT", message)).message, expected);
  }
});

Deno.test("readError() replaces the text of upstream failures and keeps it as cause", () => {
  const quota = "Quota exceeded for metric: generate_content_requests, limit: 20, project 77";
  const cases: [string, string][] = [
    ["RESOURCE_EXHAUSTED", "The rate limit of the model's vendor is reached"],
    ["UNAVAILABLE", "The model's vendor is overloaded"],
    ["DEADLINE_EXCEEDED", "The model's vendor took too long to answer"],
    ["NOT_FOUND", "The model's vendor does not have this model, or a file that the request names"],
    ["INTERNAL", "The model's vendor failed to answer"],
    ["FAILED_PRECONDITION", "The model's vendor failed to answer"],
  ];
  for (const [status, message] of cases) {
    const error = geminiUpstream.readError(500, errorOf(status, quota));
    assertEquals([error.message, error.cause], [message, `upstream status 500 ${status}: ${quota}`]);
  }
});

Deno.test("readError() hides problems of the gateway's key from clients", () => {
  const message = "API key not valid. Please pass a valid API key.";
  const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }];
  const cases: [number, Json][] = [
    [400, { error: { code: 400, message, status: "INVALID_ARGUMENT", details } }],
    [400, { error: { code: 400, message, status: "INVALID_ARGUMENT" } }],
    [403, errorOf("PERMISSION_DENIED", "Consumer 77 has been suspended.", 403)],
  ];
  for (const [status, body] of cases) {
    const error = geminiUpstream.readError(status, body);
    assertEquals([error.kind, error.message], ["upstream", "The model's vendor refused the gateway's credentials"]);
  }
});

Deno.test("readError() recognizes an exceeded context and retry delays", () => {
  const long = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
  assertEquals(geminiUpstream.readError(400, errorOf("INVALID_ARGUMENT", long)).code, "context_length_exceeded");
  const wait = (retryDelay: Json) =>
    geminiUpstream.readError(429, {
      error: {
        code: 429,
        message: "Slow down",
        status: "RESOURCE_EXHAUSTED",
        details: [{ reason: "X" }, { retryDelay }],
      },
    }).retryAfterMs;
  assertEquals([wait("34.074824224s"), wait("2s"), wait("soon"), wait(7)], [34_075, 2_000, undefined, undefined]);
});
