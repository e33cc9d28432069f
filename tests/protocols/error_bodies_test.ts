import { assertEquals } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { anthropicError } from "../../lib/protocols/error_bodies.ts";

Deno.test("an error in Anthropic's shape begins with the invalid member, once", () => {
  const cases: [message: string, text: string][] = [
    ["Invalid value for messages[0].role: Expected a text", "messages[0].role: Expected a text"],
    ["Missing required parameter: messages[0].role", "messages[0].role: Missing required parameter"],
    [
      "Missing required parameter: messages[0].role. Try this",
      "messages[0].role: Missing required parameter. Try this",
    ],
    ["Cannot read messages[0].role: Expected base64", "messages[0].role: Expected base64"],
    ["Cannot use it", "messages[0].role: Cannot use it"],
    ["messages[0].role: is unknown", "messages[0].role: is unknown"],
    ["Invalid value for messages[0].roles: x", "messages[0].role: Invalid value for messages[0].roles: x"],
  ];
  for (const [message, text] of cases) {
    assertEquals(anthropicError(new GatewayError("invalid", message, { param: "messages[0].role" })).message, text);
  }
});
