import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { GatewayError } from "../../../lib/errors.ts";
import { checkVersion, messages } from "../../../lib/protocols/messages/mod.ts";

Deno.test("checkVersion() accepts the two versions the official SDKs send", () => {
  for (const version of ["2023-06-01", "2026-10-21"]) checkVersion(version);
});

Deno.test("checkVersion() names the header and the accepted values", () => {
  for (const header of [null, "", "2023-01-01", "2023-06-01, 2023-06-01", "2023-06-01 "]) {
    const error = assertThrows(() => checkVersion(header), GatewayError);
    assertEquals(error.kind, "invalid");
    for (const part of ["anthropic-version", "2023-06-01", "2026-10-21"]) assertStringIncludes(error.message, part);
  }
});

Deno.test("the codec checks the version header and no other", () => {
  const names: string[] = [];
  messages.checkHeaders?.((name) => {
    names.push(name);
    return "2023-06-01";
  });
  assertEquals(names, ["anthropic-version"]);
  assertThrows(() => messages.checkHeaders?.(() => null), GatewayError);
});
