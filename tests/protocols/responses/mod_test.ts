import { assertEquals } from "@std/assert";
import type { Signature } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import { readEncrypted, writeEncrypted } from "../../../lib/protocols/responses/encrypted_content.ts";
import { responses } from "../../../lib/protocols/responses/mod.ts";

Deno.test("contextError() states the input and the limit", () => {
  const error = responses.contextError({ input: 12, output: 0, limit: 10 });
  assertEquals([error.kind, error.param, error.code], ["invalid", "input", "context_length_exceeded"]);
  assertEquals(
    error.message,
    "Your input exceeds the context window of this model: it has 12 tokens, the limit is 10",
  );
});

Deno.test("writeError() writes OpenAI's error", () => {
  const { status, headers, body } = responses.writeError(new GatewayError("invalid", "Bad", { param: "input" }), "r1");
  assertEquals([status, headers["x-request-id"]], [400, "req_r1"]);
  assertEquals(body, { error: { message: "Bad", type: "invalid_request_error", param: "input", code: null } });
});

Deno.test("signatures are restored after a round trip", () => {
  const cases: [signature: Signature, hidden: boolean][] = [
    [{ issuer: "openai", value: "gAAA", id: "rs_1" }, false],
    [{ issuer: "anthropic", value: "c2ln" }, false],
    [{ issuer: "anthropic", value: "cmVk" }, true],
    [{ issuer: "google", value: "ünï", id: "x" }, true],
  ];
  for (const [signature, hidden] of cases) {
    assertEquals(readEncrypted(writeEncrypted(signature, hidden), "rs_ours"), { signature, hidden });
  }
  const bare = { issuer: "openai", value: "gAAA" };
  assertEquals(writeEncrypted(bare, true), "gAAA");
  assertEquals(readEncrypted("gAAA", undefined), { signature: bare, hidden: false });
});
