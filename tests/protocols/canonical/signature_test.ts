import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import {
  fromBase64Url,
  readSignature,
  toBase64Url,
  writeSignature,
} from "../../../lib/protocols/canonical/signature.ts";
import type { Signature } from "../../../lib/protocols/canonical/types.ts";

Deno.test("writeSignature() leaves the native issuer's value without an envelope", () => {
  assertEquals(writeSignature({ issuer: "anthropic", value: "Ab+/=" }, "anthropic"), "Ab+/=");
  assertEquals(readSignature("Ab+/=", "anthropic"), { issuer: "anthropic", value: "Ab+/=" });
});

Deno.test("a foreign signature returns unchanged, and travels as plain ASCII", () => {
  const signatures: Signature[] = [
    { issuer: "openai", value: "gAAAA==" },
    { issuer: "openai", value: "gAAAA==", id: "rs_1" },
    { issuer: "sluice", value: "" },
    { issuer: "größe", value: '\ufeff "quotes" \\ 😀 \ud800', id: "" },
  ];
  for (const signature of signatures) {
    const text = writeSignature(signature, "anthropic");
    assertMatch(text, /^sluice1\.[A-Za-z0-9_-]+$/);
    assertEquals(readSignature(text, "anthropic"), signature);
    assertEquals(writeSignature(signature, "anthropic"), text);
  }
});

Deno.test("readSignature() leaves the envelope of another gateway closed", () => {
  const inner = writeSignature({ issuer: "sluice", value: "thought" }, "anthropic");
  const outer = writeSignature({ issuer: "anthropic", value: inner }, "anthropic");
  assertEquals(readSignature(outer, "anthropic"), { issuer: "anthropic", value: inner });
});

Deno.test("readSignature() treats everything without a valid envelope as the native issuer's", () => {
  const texts = [
    "",
    "plain",
    "sluice1.",
    "sluice1.%%%",
    `sluice1.${toBase64Url("not json")}`,
    `sluice1.${toBase64Url("[]")}`,
    `sluice1.${toBase64Url('{"issuer":"a"}')}`,
    `sluice1.${toBase64Url('{"issuer":1,"value":"b"}')}`,
    `sluice2.${toBase64Url('{"issuer":"a","value":"b"}')}`,
  ];
  for (const text of texts) assertEquals(readSignature(text, "native"), { issuer: "native", value: text });
});

Deno.test("fromBase64Url() reverses toBase64Url()", () => {
  for (const text of ["", "a", "ab", "abc", "ÿ?>~", "\ufeffbom", "😀\n\0"]) {
    const encoded = toBase64Url(text);
    assertMatch(encoded, /^[A-Za-z0-9_-]*$/);
    assertEquals(fromBase64Url(encoded), text);
  }
  assertThrows(() => fromBase64Url("_w"), TypeError);
  assertThrows(() => fromBase64Url("*"), SyntaxError);
});
