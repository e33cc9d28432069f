import { assertEquals, assertNotEquals } from "@std/assert";
import { hashText, isLegal, legalCallId } from "../../../lib/protocols/translate/legal_names.ts";
import { DIALECTS } from "./targets.ts";

const ANTHROPIC = DIALECTS.messages.dialect.callId;
const MISTRAL = DIALECTS.mistral.dialect.callId;

Deno.test("legal call ids stay, others become legal", () => {
  const cases: [string, typeof ANTHROPIC | typeof MISTRAL, boolean][] = [
    ["toolu_01", ANTHROPIC, true],
    ["x".repeat(128), ANTHROPIC, true],
    ["x".repeat(129), ANTHROPIC, false],
    ["functions.get:0", ANTHROPIC, false],
    ["a|b", ANTHROPIC, false],
    ["", ANTHROPIC, false],
    ["ABCDEFGH1", MISTRAL, true],
    ["ABCDEFGH", MISTRAL, false],
    ["call_abc_1", MISTRAL, false],
    ["ABCDEFGH_", MISTRAL, false],
  ];
  for (const [id, rule, stays] of cases) {
    const legal = legalCallId(id, rule);
    assertEquals(legal === id, stays, id);
    assertEquals(isLegal(legal, rule), true, legal);
    assertEquals(legalCallId(legal, rule), legal);
  }
});

Deno.test("ids that only differ in illegal characters stay different", () => {
  assertNotEquals(legalCallId("a.b", ANTHROPIC), legalCallId("a:b", ANTHROPIC));
  assertNotEquals(legalCallId("a.b", MISTRAL), legalCallId("a:b", MISTRAL));
});

Deno.test("a hash is the same on every machine", () => {
  assertEquals(hashText("call_1", 9), "RksXkbv4v");
  assertEquals(hashText("", 9), "5IxLHpeEW");
});
