import { assert, assertEquals } from "@std/assert";
import { objectSchema } from "../../../lib/protocols/canonical/object_schema.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";

Deno.test("objectSchema() makes an object without branches of every schema", () => {
  const a = { type: "object", properties: { a: { type: "string" }, kind: { const: "a" } }, required: ["a", "kind"] };
  const b = { type: "object", properties: { b: { type: "integer" }, kind: { const: "b" } }, required: ["b", "kind"] };
  const either = {
    type: "object",
    properties: { a: { type: "string" }, kind: { anyOf: [{ const: "a" }, { const: "b" }] }, b: { type: "integer" } },
    required: ["kind"],
  };
  const cases: [string, JsonObject, JsonObject][] = [
    ["nothing", {}, { type: "object" }],
    ["a list of types", { type: ["object", "null"], title: "t" }, { type: "object", title: "t" }],
    ["anyOf", { anyOf: [a, b, { type: "null" }], description: "d" }, { description: "d", ...either }],
    ["oneOf", { oneOf: [a, b] }, either],
    ["only required", { ...a, anyOf: [{ required: ["a"] }, { required: ["kind"] }] }, a],
    ["allOf", { allOf: [a, { properties: { c: {} }, required: ["c"] }] }, {
      type: "object",
      properties: { ...a.properties, c: {} },
      required: ["a", "kind", "c"],
    }],
    ["a reference", { $ref: "#/$defs/x", $defs: { x: a } }, { $defs: { x: a }, ...a }],
    ["branches in branches", { anyOf: [{ oneOf: [a, b] }, a] }, either],
    ["closed branches", {
      anyOf: [{ ...a, additionalProperties: false }, { ...a, additionalProperties: false }],
    }, { ...a, additionalProperties: false }],
  ];
  for (const [claim, schema, expected] of cases) {
    assertEquals(objectSchema(schema), expected, claim);
    assertEquals(objectSchema(objectSchema(schema)), objectSchema(schema), claim);
  }
});

Deno.test("objectSchema() returns a plain schema unchanged", () => {
  const plain = { type: "object", properties: { a: { anyOf: [{}] } } };
  assert(objectSchema(plain) === plain);
});

Deno.test("objectSchema() ends for recursive and endlessly branching schemas", () => {
  assertEquals(objectSchema({ $ref: "#" }), { type: "object" });
  const defs: JsonObject = {};
  for (let at = 0; at < 40; at++) {
    defs[`d${at}`] = { allOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] };
  }
  const start = performance.now();
  assertEquals(objectSchema({ $ref: "#/$defs/d0", $defs: defs }).type, "object");
  assert(performance.now() - start < 5_000);
});
