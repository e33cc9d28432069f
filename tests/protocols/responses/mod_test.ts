import { assertEquals } from "@std/assert";
import type { Signature } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import { readEncrypted, writeEncrypted } from "../../../lib/protocols/responses/encrypted_content.ts";
import { responses } from "../../../lib/protocols/responses/mod.ts";
import { responsesRelay } from "../../../lib/protocols/responses/relay.ts";
import type { KeptAnswer } from "../../../lib/protocols/codec.ts";
import { responseContextOf } from "./replies.ts";

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

Deno.test("a relayed stream is stored unless it is too long", () => {
  for (const [items, kept] of [[2, 2], [40, undefined]] as const) {
    const answers: KeptAnswer[] = [];
    const keeper = { isStored: true, keep: (answer: KeptAnswer) => void answers.push(answer) };
    const machine = responsesRelay.machine({ ...responseContextOf(), keeper });
    const text = "x".repeat(1_000_000);
    for (let at = 0; at < items; at++) {
      const type = "response.output_item.done";
      machine.push({ event: type, data: JSON.stringify({ type, item: { id: `i${at}`, type: "message", text } }) });
    }
    const type = "response.completed";
    machine.push({ event: type, data: JSON.stringify({ type, response: { id: "r", output: [{ id: "i0" }] } }) });
    assertEquals(answers[0]?.output.length, kept);
  }
});
