import { assertEquals } from "@std/assert";
import { GatewayError } from "../../../lib/errors.ts";
import { runToEnd } from "../../../lib/scheduler.ts";
import { messages, readSteps } from "../../../lib/protocols/messages/mod.ts";

Deno.test("contextError() begins with the words that make Claude Code shorten its conversation", () => {
  const reply = messages.writeError(messages.contextError({ input: 9001, output: 0, limit: 8192 }), "r1");
  assertEquals(reply.status, 400);
  assertEquals(reply.body, {
    type: "error",
    error: { type: "invalid_request_error", message: "prompt is too long: 9001 tokens > 8192 maximum" },
    request_id: "req_r1",
  });
});

Deno.test("writeError() words a vendor's refusal of a long prompt so that Claude Code shortens its conversation", () => {
  const cases = [
    ["This model's maximum context length is 30000 tokens.", "prompt is too long: "],
    ["Prompt is too long: 215000 tokens > 200000 maximum", ""],
    ["input length and `max_tokens` exceed context limit: 1 + 2 > 2", ""],
  ];
  for (const [message = "", prefix] of cases) {
    const error = new GatewayError("invalid", message, { code: "context_length_exceeded" });
    assertEquals(messages.writeError(error, "r1").body.error, {
      type: "invalid_request_error",
      message: `${prefix}${message}`,
    });
  }
});

Deno.test("writeError() writes the protocol's own error body and status", () => {
  const cases: [GatewayError, number, string][] = [
    [new GatewayError("unauthenticated", "No key"), 401, "authentication_error"],
    [new GatewayError("limited", "Slow down"), 429, "rate_limit_error"],
    [new GatewayError("overloaded", "Busy"), 529, "overloaded_error"],
  ];
  for (const [error, status, type] of cases) {
    const reply = messages.writeError(error, "r1");
    assertEquals(reply.status, status);
    assertEquals(reply.body.error, { type, message: error.message });
  }
});

Deno.test("readSteps() needs no max_tokens", () => {
  const steps = readSteps({
    model: "a/b",
    messages: [{ role: "user", content: "x" }],
    system: "s",
    tools: [{ name: "f", input_schema: { type: "object" } }],
    thinking: { type: "enabled", budget_tokens: 4096 },
  });
  assertEquals(runToEnd(steps), {
    protocol: "messages",
    model: "a/b",
    messages: [
      { role: "system", blocks: [{ type: "text", text: "s" }] },
      { role: "user", blocks: [{ type: "text", text: "x" }] },
    ],
    tools: [{ type: "function", name: "f", parameters: { type: "object" } }],
    stop: [],
    sampling: {},
    reasoning: { mode: "manual", budgetTokens: 4096 },
    stream: false,
  });
});
