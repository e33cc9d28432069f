import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import type { ContentBlock, Protocol, Reasoning } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import {
  checkThoughts,
  reasoningText,
  signReasoning,
  wantsReasoning,
} from "../../../lib/upstreams/embedded/thinking.ts";
import { assistant } from "../../protocols/canonical/messages.ts";

Deno.test("wantsReasoning() is true if reasoning was requested", () => {
  const cases: [Reasoning | undefined, boolean][] = [
    [undefined, false],
    [{}, false],
    [{ encrypted: true, display: "summarized" }, false],
    [{ mode: "off" }, false],
    [{ mode: "off", effort: "high" }, false],
    [{ effort: "none" }, false],
    [{ effort: "minimal" }, true],
    [{ effort: "max" }, true],
    [{ mode: "adaptive" }, true],
    [{ mode: "manual", budgetTokens: 1024 }, true],
  ];
  for (const [reasoning, expected] of cases) {
    assertEquals(wantsReasoning(reasoning), expected, JSON.stringify(reasoning));
  }
});

Deno.test("think() announces the model's actions", () => {
  const text = (names: string[]) => reasoningText(names.map((name) => ({ name })));
  assertStringIncludes(text([]), "repeat the end of the conversation");
  assertStringIncludes(text(["a"]), "I will call a.");
  assertStringIncludes(text(["a", "b", "c", "d", "e"]), "I will call a, b, c and 2 more.");
});

function check(block: ContentBlock, protocol: Protocol = "messages"): void {
  checkThoughts({ messages: [assistant("before"), assistant(block)], protocol });
}

Deno.test("checkThoughts() accepts its own thoughts, shown or hidden", () => {
  const signature = signReasoning("I will.");
  check({ type: "reasoning", text: "I will.", signature });
  check({ type: "reasoning", text: "", hidden: true, signature });
  check({ type: "reasoning", text: "", signature: { ...signature, id: "rs_1" } });
  assertEquals(signReasoning("I will."), signature);
});

Deno.test("checkThoughts() ignores thoughts of other models", () => {
  check({ type: "reasoning", text: "unsigned" });
  check({ type: "reasoning", text: "other", signature: { issuer: "anthropic", value: "x" } });
});

Deno.test("checkThoughts() rejects a changed thought or signature, in the protocol's words", () => {
  const { issuer, value } = signReasoning("I will.");
  const [carried = "", digest = ""] = value.split(".");
  const bad: [string, string][] = [
    ["I won't.", value],
    [" I will.", value],
    ["I will.", ""],
    ["I will.", "x"],
    ["I will.", carried],
    ["I will.", `${carried}.`],
    ["I will.", `${carried}.${digest}.`],
    ["I will.", `${carried}.${digest.toLowerCase()}`],
    ["I will.", `${carried}=.${digest}`],
    ["", `${signReasoning("else").value.split(".")[0]}.${digest}`],
    ["", "***.***"],
  ];
  for (const [text, value] of bad) {
    assertThrows(
      () => check({ type: "reasoning", text, signature: { issuer, value } }),
      GatewayError,
      "Invalid",
      value,
    );
  }
  const protocols: [Protocol, string, string][] = [
    ["messages", "Invalid `signature` in `thinking` block", "messages"],
    ["chat", "Invalid `signature` in `reasoning_details`", "messages"],
    ["responses", "Invalid `encrypted_content` in `reasoning` item", "input"],
  ];
  for (const [protocol, message, param] of protocols) {
    const error = assertThrows(
      () => check({ type: "reasoning", text: "", signature: { issuer, value: "x" } }, protocol),
      GatewayError,
    );
    assertEquals([error.kind, error.message, error.param], ["invalid", message, param]);
  }
  assert(digest.length >= 32);
});
