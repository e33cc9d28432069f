import { assertEquals } from "@std/assert";
import { runToEnd } from "../../../lib/scheduler.ts";
import { needsOpenObjects, structuredOutputSchema } from "../../../lib/protocols/canonical/structured_schema.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";

Deno.test("structuredOutputSchema() keeps supported keywords and moves others into the description", () => {
  const cases: [string, JsonObject, JsonObject][] = [
    ["objects are closed", { type: "object", properties: { a: { type: "string" } }, required: ["a"] }, {
      type: "object",
      properties: { a: { type: "string" } },
      required: ["a"],
      additionalProperties: false,
    }],
    ["open objects too", { type: "object", additionalProperties: true }, {
      type: "object",
      additionalProperties: false,
    }],
    ["maps are told", { type: "object", additionalProperties: { type: "string" } }, {
      type: "object",
      additionalProperties: false,
      description: '{additionalProperties: {"type":"string"}}',
    }],
    ["bounds are told", { type: "integer", description: "Age", minimum: 0, maximum: 9 }, {
      type: "integer",
      description: "Age\n\n{minimum: 0, maximum: 9}",
    }],
    ["a known format", { type: "string", format: "date" }, { type: "string", format: "date" }],
    ["an unknown format", { type: "string", format: "color" }, { type: "string", description: '{format: "color"}' }],
    ["lists of one or more", { type: "array", items: { type: "string" }, minItems: 1 }, {
      type: "array",
      items: { type: "string" },
      minItems: 1,
    }],
    ["longer lists", { type: "array", items: { type: "string" }, minItems: 2 }, {
      type: "array",
      items: { type: "string" },
      description: "{minItems: 2}",
    }],
    ["oneOf", { oneOf: [{ type: "string" }, { const: 1 }] }, { anyOf: [{ type: "string" }, { const: 1 }] }],
    ["anyOf beside oneOf", { anyOf: [{ type: "string" }], oneOf: [{ type: "null" }] }, {
      anyOf: [{ type: "string" }],
      description: '{oneOf: [{"type":"null"}]}',
    }],
    ["a reference stands alone", { $ref: "#/definitions/x", title: "t", definitions: { x: { type: "object" } } }, {
      $ref: "#/$defs/x",
      $defs: { x: { type: "object", additionalProperties: false } },
    }],
    ["no type", { properties: { a: { enum: [1] } } }, {
      type: "object",
      properties: { a: { enum: [1] } },
      additionalProperties: false,
    }],
  ];
  for (const [claim, schema, expected] of cases) {
    assertEquals(runToEnd(structuredOutputSchema(schema)), expected, claim);
    assertEquals(runToEnd(structuredOutputSchema(expected)), expected, claim);
  }
});

Deno.test("needsOpenObjects() finds maps and schemas that allow anything", () => {
  const map = { type: "object", additionalProperties: { type: "string" } };
  const closed = { type: "object", properties: { a: { type: "string" } }, additionalProperties: true };
  const cases: [JsonObject, boolean][] = [
    [map, true],
    [{ type: "object" }, true],
    [{ type: ["object", "null"], additionalProperties: true }, true],
    [{ type: "object", patternProperties: { "^x": {} } }, true],
    [{ ...closed, additionalProperties: { type: "string" } }, true],
    [{ type: "array", items: map }, true],
    [{ ...closed, properties: { a: { anyOf: [{ type: "null" }, map] } } }, true],
    [{ $ref: "#/$defs/a", $defs: { a: map } }, true],
    [{}, true],
    [{ $schema: "https://json-schema.org/draft/2020-12/schema", description: "Anything" }, true],
    [{ ...closed, properties: { a: {} } }, true],
    [{ type: "array", items: true }, true],
    [{ anyOf: [{ type: "null" }, { description: "Anything" }] }, true],
    [{ ...closed, anyOf: [{ required: ["a"] }] }, true],
    [closed, false],
    [{ type: "array" }, false],
    [{ type: "object", properties: {} }, false],
    [{ type: "object", additionalProperties: false }, false],
    [{ type: "object", oneOf: [closed] }, false],
    [{ enum: [1] }, false],
    [{ $ref: "#/definitions/a", definitions: { a: closed } }, false],
  ];
  for (const [schema, expected] of cases) {
    assertEquals(runToEnd(needsOpenObjects(schema)), expected, JSON.stringify(schema));
  }
});
