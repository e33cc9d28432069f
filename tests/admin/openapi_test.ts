import { assert, assertEquals } from "@std/assert";
import { ACCESS } from "../../lib/access/access_table.ts";
import { isObject, type JsonObject } from "../../lib/json/mod.ts";
import { OPERATIONS } from "./openapi_validator.ts";

function statusesOf(name: string): string[] {
  return Object.keys(OPERATIONS.get(name)?.responses as JsonObject);
}

Deno.test("the admin description lists exactly the admin routes, all with the admin key", () => {
  const rows = Object.entries(ACCESS).filter(([, { credential }]) => credential === "admin").map(([name]) => name);
  assertEquals([...OPERATIONS.keys()].sort(), rows.sort());
  for (const [name, operation] of OPERATIONS) {
    assertEquals(operation.security, [{ bearer: [] }], name);
    assertEquals(
      [401, 403].map((status) => statusesOf(name).includes(`${status}`)),
      [true, !name.startsWith("GET ")],
      name,
    );
    const inPath = (operation.parameters as JsonObject[]).filter((parameter) => parameter.in === "path");
    assertEquals(inPath.map((parameter) => `[${parameter.name}]`), name.match(/\[\w+\]/g) ?? [], name);
  }
  const rotation = OPERATIONS.get("POST /admin/v1/keys/[key]/rotate")?.requestBody;
  assert(isObject(rotation) && rotation.required === false);
  const query = (OPERATIONS.get("GET /admin/v1/usage")?.parameters as JsonObject[]).map(({ name }) => name);
  assertEquals(query, ["since", "until", "period", "by", "key", "group", "model", "user", "tag", "upstream"]);
});
