import { assert, assertEquals, assertLess } from "@std/assert";
import { smallestInstance } from "../../../lib/upstreams/embedded/smallest_instance.ts";
import { isInstance } from "../../../lib/upstreams/embedded/json_schema_instance.ts";
import { type Json, parseJson } from "../../../lib/json/mod.ts";
import { workedMs } from "../../support/turns.ts";

const POINT: Json = {
  type: "object",
  properties: { x: { type: "integer" }, y: { type: "number" } },
  required: ["x"],
  additionalProperties: false,
};
const TREE: Json = {
  $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } }, additionalProperties: false } },
  $ref: "#/$defs/node",
};

Deno.test("isInstance() evaluates the supported keywords", () => {
  const cases: [schema: Json, value: string, is: boolean][] = [
    [true, "1", true],
    [false, "1", false],
    [{}, "null", true],
    [{ type: "integer" }, "12345678901234567890", true],
    [{ type: "integer" }, "1.0", true],
    [{ type: "integer" }, "1.5", false],
    [{ type: ["string", "null"] }, "null", true],
    [{ type: ["string", "null"] }, "0", false],
    [{ enum: ["a", { b: [1] }] }, '{"b":[1]}', true],
    [{ enum: ["a"] }, '"b"', false],
    [{ const: null }, "null", true],
    [{ const: 1 }, "2", false],
    [{ minimum: 1, exclusiveMaximum: 3 }, "1", true],
    [{ minimum: 1, exclusiveMaximum: 3 }, "3", false],
    [{ minimum: 1, exclusiveMinimum: true }, "1", false],
    [{ maximum: 1 }, "1.1", false],
    [{ multipleOf: 0.1 }, "0.3", true],
    [{ multipleOf: 2 }, "3", false],
    [{ minLength: 2, maxLength: 2 }, '"🙂🙂"', true],
    [{ minLength: 2 }, '"🙂"', false],
    [{ items: { type: "string" } }, '["a"]', true],
    [{ items: { type: "string" } }, '["a",1]', false],
    [{ prefixItems: [{ type: "string" }], items: false }, '["a"]', true],
    [{ prefixItems: [{ type: "string" }], items: false }, '["a","b"]', false],
    [{ minItems: 1 }, "[]", false],
    [{ maxItems: 1 }, "[1,2]", false],
    [POINT, '{"x":1,"y":0.5}', true],
    [POINT, '{"y":0.5}', false],
    [POINT, '{"x":1,"z":1}', false],
    [{ additionalProperties: { type: "number" } }, '{"a":"b"}', false],
    [{ minProperties: 1 }, "{}", false],
    [{ required: ["toString"] }, "{}", false],
    [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, "3", false],
    [{ anyOf: [{ const: 1 }, { const: 2 }] }, "2", true],
    [{ oneOf: [{ minimum: 1 }, { minimum: 2 }] }, "3", false],
    [{ oneOf: [{ minimum: 1 }, { minimum: 2 }] }, "1", true],
    [TREE, '{"next":{"next":{}}}', true],
    [TREE, '{"next":{"next":1}}', false],
    [{ type: "string", pattern: "^a" }, '"a"', false],
    [{ $ref: "#" }, "1", false],
  ];
  for (const [schema, value, is] of cases) {
    assertEquals(isInstance(parseJson(value), schema), is, `${JSON.stringify(schema)} ${value}`);
  }
});

Deno.test("isInstance() accepts the smallest instance of a schema", () => {
  const schemas: Json[] = [
    POINT,
    TREE,
    { type: "array", minItems: 3, items: { type: "string", minLength: 4 } },
    { type: "number", minimum: 0.15, multipleOf: 0.1 },
    { anyOf: [{ type: "integer", exclusiveMaximum: -3 }, { type: "null" }] },
    { allOf: [POINT, { properties: { y: { minimum: 2 } }, required: ["y"] }] },
  ];
  for (const schema of schemas) {
    const value = smallestInstance(schema);
    assert(value !== undefined && isInstance(value, schema), JSON.stringify([schema, value]));
  }
});

Deno.test("isInstance() takes bounded time for branching schemas", () => {
  let schema: Json = { const: 1 };
  for (let level = 0; level < 40; level++) schema = { anyOf: [schema, schema] };
  const begin = workedMs();
  assertEquals(isInstance(2, schema), false);
  assertLess(workedMs() - begin, 5_000);
});
