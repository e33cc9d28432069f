import { assertEquals } from "@std/assert";
import { GatewayError } from "../../../lib/errors.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";

Deno.test("contextError() has OpenAI's code and names the messages", () => {
  const error = chat.contextError({ input: 130, output: 0, limit: 128 });
  assertEquals(chat.writeError(error, "r1"), {
    status: 400,
    headers: { "x-request-id": "req_r1" },
    body: {
      error: {
        message: "This model's maximum context length is 128 tokens. However, your messages resulted in 130 tokens. " +
          "Please reduce the length of the messages.",
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded",
      },
    },
  });
});

Deno.test("writeError() tells the client when to retry", () => {
  const { status, headers } = chat.writeError(new GatewayError("limited", "Slow down", { retryAfterMs: 1500 }), "r1");
  assertEquals([status, headers["retry-after"], headers["retry-after-ms"]], [429, "2", "1500"]);
});
