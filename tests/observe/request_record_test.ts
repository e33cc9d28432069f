import { assertEquals } from "@std/assert";
import { ACCESS } from "../../lib/access/access_table.ts";
import { editSchema } from "../../lib/images/read_edit.ts";
import { generationSchema } from "../../lib/images/read_generation.ts";
import { endpointOf, memberName, memberNames } from "../../lib/observe/request_record.ts";
import { chat } from "../../lib/protocols/chat/mod.ts";
import { messages } from "../../lib/protocols/messages/mod.ts";
import { responses } from "../../lib/protocols/responses/mod.ts";

Deno.test("memberName() keeps every member name of the protocols", () => {
  const schemas = [chat.schema, responses.schema, messages.schema, generationSchema, editSchema];
  const names = schemas.flatMap((schema) => Object.keys((schema as { shape?: object }).shape ?? {}));
  assertEquals(names.length > 60, true);
  assertEquals(names.filter((name) => memberName(name) !== name && !name.endsWith("[]")), []);
});

Deno.test("memberName() replaces names made up by clients", () => {
  const cases: [string, string][] = [
    ["top_k", "top_k"],
    ["reasoning.effort", "reasoning.effort"],
    ["tools.web_search_20990101", "tools.other"],
    ["my secret", "other"],
    ["my.secret", "other"],
    ["", "other"],
    ["toString", "other"],
    ["__proto__.x", "other"],
  ];
  for (const [name, expected] of cases) assertEquals(memberName(name), expected, name);
  assertEquals(memberNames(["a", "top_k", "b"]), ["other", "top_k"]);
});

Deno.test("endpointOf() names every endpoint that needs a client's key", () => {
  const unnamed = Object.entries(ACCESS).filter(([, { endpoint }]) => endpoint !== undefined).map(([key]) => key)
    .filter((key) => {
      const [method = "", route = ""] = key.split(" ");
      return endpointOf({ method, route }) === "other";
    });
  assertEquals(unnamed, []);
});
