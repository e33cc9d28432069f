import { assertEquals } from "@std/assert";
import { type ErrorKind, type ErrorOptions, GatewayError } from "../../lib/errors.ts";
import { classifyFailure } from "../../lib/routing/classify_failure.ts";

Deno.test("classifyFailure() follows the table", () => {
  const reported = { retryAfterMs: 700 };
  const cases: [kind: ErrorKind, options: ErrorOptions, outcome: string, again: string, next: string][] = [
    ["upstream", { fault: "unreachable" }, "unreachable", "now", "target"],
    ["timeout", { fault: "unreachable" }, "unreachable", "now", "target"],
    ["exhausted", reported, "limited", "last", "target"],
    ["exhausted", { retryAfterMs: 2_001 }, "limited", "never", "target"],
    ["exhausted", {}, "limited", "never", "target"],
    ["exhausted", { fault: "credit", final: true }, "limited", "never", "target"],
    ["overloaded", reported, "busy", "last", "target"],
    ["upstream", { fault: "status" }, "failure", "never", "target"],
    ["upstream", {}, "failure", "never", "target"],
    ["upstream", { fault: "key" }, "refused", "never", "target"],
    ["upstream", { fault: "access" }, "neither", "never", "target"],
    ["upstream", { fault: "oversized" }, "neither", "never", "target"],
    ["timeout", {}, "failure", "never", "target"],
    ["timeout", { fault: "status" }, "failure", "never", "target"],
    ["invalid", { fault: "unfit" }, "neither", "never", "target"],
    ["invalid", { fault: "status" }, "neither", "never", "none"],
    ["invalid", { code: "context_length_exceeded" }, "neither", "never", "model"],
    ["invalid", { code: "content_policy_violation" }, "neither", "never", "model"],
    ["not_found", { fault: "status" }, "neither", "never", "target"],
    ["too_large", { fault: "status" }, "neither", "never", "model"],
    ["too_large", { fault: "quota" }, "neither", "never", "target"],
    ["limited", {}, "neither", "never", "none"],
    ["internal", {}, "neither", "never", "none"],
  ];
  for (const [kind, options, outcome, again, next] of cases) {
    const verdict = classifyFailure(new GatewayError(kind, "x", options));
    const name = `${kind} ${JSON.stringify(options)}`;
    assertEquals([verdict.outcome.type, verdict.repeat, verdict.next], [outcome, again, next], name);
  }
  assertEquals(classifyFailure(new TypeError("x")), { outcome: { type: "neither" }, repeat: "never", next: "none" });
});

Deno.test("classifyFailure() requires as much time again after a gateway timeout, not after an upstream's", () => {
  assertEquals(classifyFailure(new GatewayError("timeout", "x")).slow, true);
  assertEquals(classifyFailure(new GatewayError("timeout", "x", { fault: "status" })).slow, false);
});

Deno.test("classifyFailure() does not repeat a request that may have started", () => {
  const cases: [ErrorKind, ErrorOptions, next: string][] = [
    ["upstream", {}, "target"],
    ["upstream", { final: true }, "none"],
    ["timeout", { final: true }, "none"],
    ["upstream", { final: true, fault: "status" }, "none"],
    ["exhausted", { final: true, fault: "credit" }, "target"],
    ["upstream", { final: true, fault: "key" }, "target"],
    ["upstream", { fault: "unreachable" }, "target"],
  ];
  for (const [kind, options, next] of cases) {
    const error = new GatewayError(kind, "x", options);
    assertEquals(classifyFailure(error, { atMostOnce: true }).next, next, JSON.stringify(options));
    assertEquals(classifyFailure(error).next, "target");
  }
});

Deno.test("classifyFailure() ends no request for an error of a half-open target, but for one that may be running", () => {
  const error = (options: ErrorOptions) => new GatewayError("upstream", "x", { final: true, ...options });
  const next = (options: ErrorOptions) => classifyFailure(error(options), { atMostOnce: true, isTrial: true }).next;
  assertEquals([next({ fault: "status" }), next({})], ["target", "none"]);
});
