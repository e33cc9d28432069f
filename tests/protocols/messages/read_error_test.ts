import { assertEquals } from "@std/assert";
import type { ErrorKind } from "../../../lib/errors.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import { messagesUpstream } from "../../../lib/protocols/messages/upstream.ts";

function body(type: Json, message: Json): Json {
  return { type: "error", error: { type, message }, request_id: "req_1" };
}

Deno.test("readError() maps errors to kinds", () => {
  const cases: [status: number, body: Json | undefined, kind: ErrorKind][] = [
    [400, body("invalid_request_error", "max_tokens: Field required"), "invalid"],
    [422, body("invalid_request_error", "x"), "invalid"],
    [409, body("conflict_error", "x"), "invalid"],
    [401, body("authentication_error", "invalid x-api-key"), "upstream"],
    [401, body("invalid_request_error", "invalid x-api-key"), "upstream"],
    [402, body("billing_error", "Your credit balance is too low"), "exhausted"],
    [402, undefined, "exhausted"],
    [403, body("permission_error", "x"), "upstream"],
    [404, body("not_found_error", "model: vendor-model-9"), "not_found"],
    [404, undefined, "not_found"],
    [408, undefined, "timeout"],
    [413, body("request_too_large", "x"), "too_large"],
    [413, "<html>Too large</html>", "too_large"],
    [429, body("rate_limit_error", "x"), "exhausted"],
    [429, null, "exhausted"],
    [500, body("api_error", "x"), "upstream"],
    [500, body("overloaded_error", "x"), "overloaded"],
    [502, "<html>Bad gateway</html>", "upstream"],
    [503, undefined, "overloaded"],
    [504, body("timeout_error", "x"), "timeout"],
    [529, body("overloaded_error", "x"), "overloaded"],
    [500, { error: "a text" }, "upstream"],
    [400, { error: { message: ["x"], type: {} } }, "invalid"],
    [400, [], "invalid"],
  ];
  for (const [status, answer, kind] of cases) {
    assertEquals(messagesUpstream.readError(status, answer).kind, kind, `${status} ${JSON.stringify(answer)}`);
  }
});

Deno.test("readError() recognizes errors of the account, even with status 400", () => {
  const cases: [vendorText: string, kind: ErrorKind, fault: string | undefined][] = [
    [
      "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
      "exhausted",
      "credit",
    ],
    ["You have reached your specified API usage limits. You will regain access on 2026-12-01.", "exhausted", "credit"],
    ["You have reached your specified workspace API usage limits.", "exhausted", "credit"],
    ["This organization has been disabled.", "upstream", "key"],
    // A client's own words cannot begin a text of the vendor.
    ["tools.0.name: Your credit balance is too low", "invalid", undefined],
  ];
  for (const [vendorText, kind, fault] of cases) {
    const error = messagesUpstream.readError(400, body("invalid_request_error", vendorText));
    assertEquals([error.kind, error.fault], [kind, fault], vendorText);
    assertEquals([error.code, error.final], fault === "credit" ? ["insufficient_quota", true] : [undefined, false]);
    assertEquals(error.message.includes("Billing"), false);
  }
});

Deno.test("readError() passes on client errors without addresses and keys", () => {
  const cases: [vendorText: string, reported: string][] = [
    ["messages.0.content: Field required", "messages.0.content: Field required"],
    ["see https://api.example.test/docs?key=1 for more", "see [address] for more"],
    ["bad key sk-ant-api03-abcdef_ghi and Bearer abc.def", "bad key [key] and [key]"],
    ["two\nlines\u0000", "two lines"],
    ["", "The model's vendor refused this request"],
    ["x".repeat(5000), "x".repeat(1000)],
  ];
  for (const [vendorText, reported] of cases) {
    assertEquals(messagesUpstream.readError(400, body("invalid_request_error", vendorText)).message, reported);
  }
});

Deno.test("readError() hides messages about the gateway", () => {
  const vendorText = "organization org_9 may not, key sk-ant-1234567890";
  for (const status of [401, 402, 403, 404, 413, 429, 500, 503, 504, 529]) {
    const { message, cause } = messagesUpstream.readError(status, body("some_error", vendorText));
    assertEquals(message.includes("org_9"), false, String(status));
    assertEquals(cause, `${status} some_error ${vendorText}`);
  }
});

Deno.test("readError() recognizes an exceeded context", () => {
  const cases: [vendorText: string, code: string | undefined][] = [
    ["prompt is too long: 215000 tokens > 200000 maximum", "context_length_exceeded"],
    ["input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", "context_length_exceeded"],
    ["max_tokens: 99999 > 64000", undefined],
  ];
  for (const [vendorText, code] of cases) {
    const error = messagesUpstream.readError(400, body("invalid_request_error", vendorText));
    assertEquals([error.kind, error.code, error.message], ["invalid", code, vendorText]);
  }
});

Deno.test("readError() keeps only the code of a conversation that the vendor cannot continue", () => {
  const cases: [status: number, details: JsonObject, kind: ErrorKind, code: string | undefined][] = [
    [400, { error_code: "thread_unsupported_request", unsupported: ["x"] }, "invalid", "thread_unsupported_request"],
    [404, { error_code: "thread_not_found" }, "not_found", "thread_not_found"],
    [400, { error_code: "account_code" }, "invalid", undefined],
    [400, { error_code: "thread_\n" }, "invalid", undefined],
  ];
  for (const [status, details, kind, code] of cases) {
    const type = status === 404 ? "not_found_error" : "invalid_request_error";
    const error = messagesUpstream.readError(status, { type: "error", error: { type, message: "Gone", details } });
    assertEquals([error.kind, error.code, error.message], [kind, code, "Gone"]);
  }
});
