import { assert, assertEquals } from "@std/assert";
import { GatewayError } from "../lib/errors.ts";
import { brokenRule } from "../lib/request/broken_rule.ts";
import { rememberSecret } from "../lib/secret.ts";
import { workedMs } from "./support/turns.ts";

Deno.test("an error quotes a part of a large body only", () => {
  rememberSecret("secret-of-the-errors-0123456789");
  const long = "\\(".repeat(2_000_000);
  const before = workedMs();
  const error = new GatewayError("invalid", `Cannot use provider.order: no upstream is known as ${long}`, {
    param: `provider.${long}`,
  });
  assert(workedMs() - before < 500);
  assertEquals([error.message.length, error.param?.length], [4_096, 4_096]);
  assertEquals(error.with({}).message, error.message);
  // The rule is stored, so it must have no text of the client.
  assertEquals(brokenRule(error), "…");
  assertEquals(brokenRule(new GatewayError("invalid", `Cannot use a: unknown "${long}"`, { param: "a" })), "…");
});
