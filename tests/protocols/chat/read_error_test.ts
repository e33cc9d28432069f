import { assert, assertEquals } from "@std/assert";
import type { Json } from "../../../lib/json/mod.ts";
import { chatUpstream } from "../../../lib/protocols/chat/upstream.ts";

const openai = (type: string, code: string | null, message = "No.", param: string | null = null): Json => ({
  error: { message, type, param, code },
});

const OVER_QUOTA = "Request too large for gpt-5 in organization org-a on tokens per min (TPM): Limit 30000, " +
  "Requested 45000. The input or output tokens must be reduced in order to run successfully.";
const TOO_LARGE = "The request is larger than the model's vendor accepts";

Deno.test("readError() reads the known shapes of errors", () => {
  const cases: [status: number, body: Json | undefined, kind: string, code?: string, message?: string][] = [
    [400, openai("invalid_request_error", null), "invalid", undefined, "No."],
    [400, openai("invalid_request_error", "unsupported_parameter"), "invalid", "unsupported_parameter"],
    [400, openai("invalid_request_error", "context_length_exceeded"), "invalid", "context_length_exceeded"],
    [
      400,
      openai("BadRequestError", null, "This model's maximum context length is 8192 tokens."),
      "invalid",
      "context_length_exceeded",
    ],
    [413, openai("invalid_request_error", null, "Prompt is too long"), "invalid", "context_length_exceeded"],
    [401, openai("invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-abc"), "upstream"],
    [403, openai("permission_error", null, "Project lacks the model"), "upstream"],
    [402, { error: { message: "Insufficient credits", code: 402 } }, "exhausted", "insufficient_quota"],
    [429, openai("insufficient_quota", "insufficient_quota"), "exhausted", "insufficient_quota"],
    [429, openai("insufficient_quota", "credit_balance_exhausted"), "exhausted", "insufficient_quota"],
    [400, openai("invalid_request_error", "billing_hard_limit_reached"), "exhausted", "insufficient_quota"],
    [429, openai("billing_not_active", "billing_not_active"), "exhausted", "insufficient_quota"],
    [429, openai("tokens", "rate_limit_exceeded"), "exhausted"],
    [429, openai("tokens", "rate_limit_exceeded", OVER_QUOTA), "too_large", undefined, TOO_LARGE],
    [413, openai("tokens", "rate_limit_exceeded", OVER_QUOTA), "too_large", undefined, TOO_LARGE],
    [404, openai("invalid_request_error", "model_not_found"), "not_found", "model_not_found"],
    [404, "404 page not found", "not_found", "model_not_found"],
    [413, "too big", "too_large", undefined, "too big"],
    [408, undefined, "timeout"],
    [409, undefined, "upstream"],
    [
      500,
      openai("server_error", null, "pod 10.0.0.1 crashed"),
      "upstream",
      undefined,
      "The model's vendor failed to answer",
    ],
    [502, "<html>Bad gateway</html>", "upstream"],
    [503, openai("service_unavailable_error", "server_is_overloaded"), "overloaded"],
    [504, undefined, "timeout"],
    [529, undefined, "overloaded"],
    // FastAPI
    [
      422,
      { detail: [{ loc: ["body", "n"], msg: "Input should be 1", type: "x" }] },
      "invalid",
      undefined,
      "n: Input should be 1",
    ],
    [400, { detail: "Bad thing" }, "invalid", undefined, "Bad thing"],
    // Mistral
    [
      422,
      {
        object: "error",
        message: {
          detail: [{ type: "extra_forbidden", loc: ["body", "user"], msg: "Extra inputs are not permitted" }],
        },
        type: "invalid_request_error",
        param: null,
        code: null,
      },
      "invalid",
      undefined,
      "user: Extra inputs are not permitted",
    ],
    // Ollama
    [400, { error: "model requires more memory" }, "invalid", undefined, "model requires more memory"],
    // Google
    [400, [{ error: { code: 400, message: "Bad", status: "INVALID_ARGUMENT" } }], "invalid", undefined, "Bad"],
    // OpenRouter
    [
      400,
      {
        error: {
          code: 400,
          message: "Provider returned error",
          metadata: {
            raw: '{"error":{"message":"top_p is bad","type":"invalid_request_error"}}',
            provider_name: "acme",
          },
        },
      },
      "invalid",
      undefined,
      "top_p is bad",
    ],
    [
      403,
      { error: { code: 403, message: "Flagged", metadata: { reasons: ["violence"], flagged_input: "x" } } },
      "invalid",
      "content_policy_violation",
      "Flagged",
    ],
    [200, { error: { code: 429, message: "Slow down" } }, "exhausted"],
    [200, { error: { message: "x", metadata: { error_type: "payment_required" } } }, "exhausted", "insufficient_quota"],
    [200, openai("invalid_request_error", null), "invalid"],
    [200, { error: true }, "upstream"],
    [400, undefined, "invalid", undefined, "The model's vendor refused this request"],
    [418, "<html></html>", "invalid", undefined, "The model's vendor refused this request"],
  ];
  for (const [status, body, kind, code, message] of cases) {
    const error = chatUpstream.readError(status, body);
    const note = `${status} ${JSON.stringify(body)}`;
    assertEquals([error.kind, error.code], [kind, code], note);
    if (message !== undefined) assertEquals(error.message, message, note);
    assertEquals(error.final, code === "insufficient_quota", note);
  }
});

Deno.test("readError() passes on the invalid member", () => {
  const { param } = chatUpstream.readError(400, openai("invalid_request_error", null, "No.", "temperature"));
  assertEquals(param, "temperature");
});

Deno.test("readError() reveals no address and no key", () => {
  const secrets = [
    "sk-proj-abcdef1234567890",
    "https://acme.openai.azure.com/openai/deployments/x?api-version=1",
    "10.12.0.7:8000",
    "localhost:11434",
    "inference.models.svc",
    "Bearer abcdef",
    "gsk_1234567890abcdef",
    "0123456789abcdef0123456789abcdef",
  ];
  for (const secret of secrets) {
    const { message } = chatUpstream.readError(400, openai("invalid_request_error", null, `Bad: ${secret}, sorry`));
    assert(!message.includes(secret) && message.startsWith("Bad: [") && message.endsWith("sorry"), message);
  }
  assert(chatUpstream.readError(400, "x".repeat(100_000)).message.length <= 1_000);
});

Deno.test("readError() keeps ordinary words", () => {
  const text = "Invalid schema for function 'get_weather': 'type' must be one of object, array (version 1.2.3)";
  assertEquals(chatUpstream.readError(400, openai("invalid_request_error", null, text)).message, text);
});
