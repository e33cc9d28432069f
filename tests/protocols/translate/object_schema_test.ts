import { assert, assertEquals, assertLess } from "@std/assert";
import { countedList } from "../../support/counted_list.ts";
import { objectSchema } from "../../../lib/protocols/translate/object_schema.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { workedMs } from "../../support/turns.ts";

Deno.test("objectSchema() makes an object without branches of every schema", () => {
  const a = { type: "object", properties: { a: { type: "string" }, kind: { const: "a" } }, required: ["a", "kind"] };
  const b = { type: "object", properties: { b: { type: "integer" }, kind: { const: "b" } }, required: ["b", "kind"] };
  const either = {
    type: "object",
    properties: { a: { type: "string" }, kind: { anyOf: [{ const: "a" }, { const: "b" }] }, b: { type: "integer" } },
    required: ["kind"],
  };
  const cases: [string, JsonObject, JsonObject][] = [
    ["nothing", {}, { type: "object", properties: {} }],
    ["a tool without arguments", { type: "object", additionalProperties: false }, {
      type: "object",
      additionalProperties: false,
      properties: {},
    }],
    ["a list of types", { type: ["object", "null"], title: "t" }, {
      type: "object",
      title: "t",
      properties: {},
    }],
    ["anyOf", { anyOf: [a, b, { type: "null" }], description: "d" }, { description: "d", ...either }],
    ["oneOf", { oneOf: [a, b] }, either],
    ["only required", { ...a, anyOf: [{ required: ["a"] }, { required: ["kind"] }] }, a],
    ["allOf", { allOf: [a, { properties: { c: {} }, required: ["c"] }] }, {
      type: "object",
      properties: { ...a.properties, c: {} },
      required: ["a", "kind", "c"],
    }],
    ["the narrower limit", { allOf: [{ maxProperties: 1 }, { maxProperties: 3 }] }, {
      type: "object",
      maxProperties: 1,
      properties: {},
    }],
    ["a reference", { $ref: "#/$defs/x", $defs: { x: a } }, { $defs: { x: a }, ...a }],
    ["a percent-encoded reference", { $ref: "#/$defs/x%3Cy%3E", $defs: { "x<y>": a } }, { $defs: { "x<y>": a }, ...a }],
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
  assertEquals(objectSchema({ $ref: "#" }), { type: "object", properties: {} });
  const defs: JsonObject = {};
  for (let at = 0; at < 40; at++) {
    defs[`d${at}`] = { allOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] };
  }
  const start = workedMs();
  assertEquals(objectSchema({ $ref: "#/$defs/d0", $defs: defs }).type, "object");
  assert(workedMs() - start < 5_000);
});

Deno.test("objectSchema() keeps the members of hundreds of branches", () => {
  const anyOf = Array.from({ length: 400 }, (_, branch) => ({
    type: "object",
    properties: Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`m${branch}_${at}`, { type: "string" }])),
  }));
  const { properties } = objectSchema({ anyOf });
  assertEquals(Object.keys(properties as JsonObject).length, 400 * 20);
});

Deno.test("objectSchema() repeats a schema once, however often it is referred to", () => {
  const $defs = { large: { properties: { text: { description: "x".repeat(1_000_000) } } } };
  const allOf = Array.from({ length: 500 }, () => ({ $ref: "#/$defs/large" }));
  const written = JSON.stringify(objectSchema({ type: "object", $defs, allOf }));
  assertLess(written.length, 2_001_000);
});

Deno.test("objectSchema() leaves out constraints that would repeat large schemas", () => {
  const $defs: JsonObject = { large: { properties: { text: { description: "x".repeat(1_000_000) } } } };
  const anyOf = Array.from({ length: 500 }, (_, at) => ({
    allOf: [{ $ref: "#/$defs/large" }, { properties: { text: { description: `small ${at}` } } }],
  }));
  const written = JSON.stringify(objectSchema({ type: "object", $defs, anyOf }));
  assertLess(written.length, 6_000_000);
});

Deno.test("objectSchema() does not compare each type with each other", () => {
  const types = (letter: string) => countedList(Array.from({ length: 1_000 }, (_, at) => `${letter}${at}`));
  const [a, b] = [types("a"), types("b")];
  objectSchema({ type: a.list, allOf: [{ type: b.list }] });
  assertLess(a.reads() + b.reads(), 10_000);
});
