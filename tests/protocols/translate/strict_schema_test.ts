import { assert, assertEquals, assertLess } from "@std/assert";
import { countedList } from "../../support/counted_list.ts";
import { isStrictSchema } from "../../../lib/protocols/translate/fit_schemas.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";

Deno.test("isStrictSchema() recognizes schemas that strict mode accepts unchanged", () => {
  const closed = {
    type: "object",
    properties: { a: { type: "string" } },
    required: ["a"],
    additionalProperties: false,
  };
  const cases: [string, JsonObject, boolean][] = [
    ["closed, all required", closed, true],
    ["nested", { ...closed, properties: { a: closed } }, true],
    ["in a list", { ...closed, properties: { a: { type: "array", items: closed } } }, true],
    ["a choice below the top", { ...closed, properties: { a: { anyOf: [closed, { type: "null" }] } } }, true],
    ["definitions", { ...closed, properties: { a: { $ref: "#/$defs/b" } }, $defs: { b: closed } }, true],
    ["open", { type: "object", properties: {}, required: [] }, false],
    ["not all required", { ...closed, required: [] }, false],
    ["no word about what is required", { type: "object", properties: {}, additionalProperties: false }, false],
    ["open below", { ...closed, properties: { a: { type: "object" } } }, false],
    ["open in a definition", { ...closed, $defs: { b: { type: "object" } } }, false],
    ["a choice at the top", { ...closed, anyOf: [closed] }, false],
    ["no object", { type: "array", items: closed }, false],
    ["no type", {}, false],
    ["a keyword not everybody knows", { ...closed, properties: { a: { type: "string", minLength: 1 } } }, false],
    ["anything", { ...closed, properties: { a: true } }, false],
  ];
  for (const [name, schema, expected] of cases) assertEquals(isStrictSchema(schema), expected, name);
});

Deno.test("isStrictSchema() reads the required names once, however many members there are", () => {
  const names = Array.from({ length: 1_000 }, (_, at) => `m${at}`);
  const { list: required, reads } = countedList([...names]);
  const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
  assert(isStrictSchema({ type: "object", additionalProperties: false, required, properties }));
  assertLess(reads(), 2 * names.length);
});
