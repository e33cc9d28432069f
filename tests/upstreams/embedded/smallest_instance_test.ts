import { assertEquals, assertLess } from "@std/assert";
import { smallestInstance } from "../../../lib/upstreams/embedded/smallest_instance.ts";
import { type Json, parseJson, writeJson } from "../../../lib/json/mod.ts";
import { workedMs } from "../../support/turns.ts";

/** Schema and smallest value, both as JSON text; no value: there is none. */
const cases: [string, string?][] = [
  // Types
  ["true", "null"],
  ["false"],
  ["{}", "null"],
  ["3", "null"],
  ['{"type":"null"}', "null"],
  ['{"type":"boolean"}', "false"],
  ['{"type":"integer"}', "0"],
  ['{"type":"number"}', "0"],
  ['{"type":"string"}', '""'],
  ['{"type":"array"}', "[]"],
  ['{"type":"object"}', "{}"],
  ['{"type":["string","null"]}', '""'],
  ['{"type":["null","string"]}', "null"],
  ['{"type":[]}'],
  ['{"type":"sorcery"}'],
  ['{"type":["sorcery","string"]}', '""'],
  // Implied types
  ['{"properties":{"a":{"type":"string"}},"required":["a"]}', '{"a":""}'],
  ['{"items":{"type":"string"},"minItems":1}', '[""]'],
  ['{"minLength":2}', '"aa"'],
  ['{"minimum":2}', "2"],
  // Fixed values
  ['{"const":{"a":[1]}}', '{"a":[1]}'],
  ['{"const":null}', "null"],
  ['{"enum":["red","green"]}', '"red"'],
  ['{"enum":[]}'],
  ['{"type":"integer","enum":["a",1.5,2]}', "2"],
  ['{"type":["string","null"],"enum":[null,"a"]}', "null"],
  ['{"type":"string","enum":[1]}'],
  ['{"enum":[12345678901234567890]}', "12345678901234567890"],
  // Numbers
  ['{"type":"integer","minimum":5}', "5"],
  ['{"type":"integer","minimum":4.2}', "5"],
  ['{"type":"integer","minimum":1.0}', "1"],
  ['{"type":"integer","exclusiveMinimum":5}', "6"],
  ['{"type":"integer","exclusiveMinimum":0}', "1"],
  ['{"type":"integer","minimum":5,"exclusiveMinimum":true}', "6"],
  ['{"type":"integer","minimum":5,"exclusiveMinimum":false}', "5"],
  ['{"type":"integer","maximum":-3}', "-3"],
  ['{"type":"integer","exclusiveMaximum":-3}', "-4"],
  ['{"type":"integer","minimum":-9,"maximum":-3.5}', "-4"],
  ['{"type":"integer","minimum":7,"multipleOf":5}', "10"],
  ['{"type":"integer","exclusiveMinimum":10,"multipleOf":5}', "15"],
  ['{"type":"integer","maximum":-7,"multipleOf":5}', "-10"],
  ['{"type":"integer","minimum":0.1,"maximum":0.9}'],
  ['{"type":"integer","minimum":-5,"maximum":5}', "0"],
  ['{"type":"number","exclusiveMinimum":0}', "1"],
  ['{"type":"number","exclusiveMinimum":0,"maximum":0.5}', "0.25"],
  ['{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}', "0.5"],
  ['{"type":"number","exclusiveMaximum":0}', "-1"],
  ['{"type":"number","minimum":0.25,"multipleOf":0.1}', "0.3"],
  ['{"type":"number","minimum":2,"maximum":1}'],
  ['{"type":"number","minimum":1e400}'],
  // Texts
  ['{"type":"string","minLength":3}', '"aaa"'],
  ['{"type":"string","minLength":3,"maxLength":2}'],
  ['{"type":"string","pattern":"^x"}', '""'],
  ['{"type":"string","format":"date-time"}', '"1970-01-01T00:00:00Z"'],
  ['{"type":"string","format":"date"}', '"1970-01-01"'],
  ['{"type":"string","format":"email"}', '"a@example.com"'],
  ['{"type":"string","format":"email","minLength":15}', '"aaa@example.com"'],
  ['{"type":"string","format":"uuid"}', '"00000000-0000-0000-0000-000000000000"'],
  ['{"type":"string","format":"uri"}', '"https://example.com/"'],
  ['{"type":"string","format":"uri","minLength":22}', '"https://example.com/aa"'],
  ['{"type":"string","format":"unheard-of"}', '""'],
  // Arrays
  ['{"type":"array","items":{"type":"integer"},"minItems":2}', "[0,0]"],
  ['{"type":"array","minItems":1}', "[null]"],
  ['{"type":"array","items":false}', "[]"],
  ['{"type":"array","items":false,"minItems":1}'],
  ['{"type":"array","prefixItems":[{"const":1},{"const":2}],"items":{"const":3},"minItems":3}', "[1,2,3]"],
  ['{"type":"array","items":[{"const":1}],"additionalItems":{"const":2},"minItems":2}', "[1,2]"],
  // Objects
  [
    '{"type":"object","properties":{"b":{"type":"string"},"c":{},"a":{"type":"integer"}},"required":["a","b"]}',
    '{"b":"","a":0}',
  ],
  ['{"type":"object","properties":{"a":{}},"required":["z","a"],"additionalProperties":false}', '{"a":null,"z":null}'],
  ['{"type":"object","properties":{"a":false}}', "{}"],
  ['{"type":"object","properties":{"a":false},"required":["a"]}'],
  ['{"type":"object","properties":{"a":{"const":1},"b":{"const":2}},"minProperties":1}', '{"a":1}'],
  [
    '{"type":"object","properties":{"__proto__":{"const":1}},"required":["__proto__","constructor"]}',
    '{"__proto__":1,"constructor":null}',
  ],
  ['{"type":"object","properties":{"a":{"default":7,"type":"integer"}},"required":["a"]}', '{"a":0}'],
  // Branches
  ['{"anyOf":[{"type":"string"},{"type":"integer"}]}', '""'],
  ['{"oneOf":[false,{"type":"integer"}]}', "0"],
  ['{"anyOf":[]}'],
  ['{"type":"integer","anyOf":[{"type":"string"},{"minimum":3}]}', "3"],
  ['{"anyOf":[{"minimum":2},{}],"oneOf":[{"maximum":1},{"type":"integer"}]}', "2"],
  ['{"properties":{"a":{"const":1}},"anyOf":[{"required":["a"]}]}', '{"a":1}'],
  ['{"allOf":[]}', "null"],
  ['{"allOf":[{"type":"integer"},{"minimum":3},{"minimum":2}]}', "3"],
  ['{"allOf":[{"type":"number"},{"type":"integer"}],"minimum":0.5}', "1"],
  ['{"allOf":[{"type":"string"},{"type":"integer"}]}'],
  ['{"allOf":[{"enum":["a","b"]},{"enum":["b","c"]}]}', '"b"'],
  ['{"allOf":[{"anyOf":[{"const":1},{"const":2}]},{"anyOf":[{"type":"string"},{"type":"integer"}]}]}', "1"],
  [
    '{"allOf":[{"properties":{"a":{"minimum":2}},"required":["a"]},{"properties":{"a":{"type":"integer"}},"required":["b"]}]}',
    '{"a":2,"b":null}',
  ],
  // References
  ['{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}', '""'],
  ['{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"const":5}}}', "5"],
  ['{"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{"const":5}}}', "5"],
  ['{"$ref":"#/$defs/a","minimum":4,"$defs":{"a":{"type":"integer","minimum":2}}}', "4"],
  ['{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"$defs":{"a":{"type":"integer"},"b":{"minimum":3}}}', "3"],
  ['{"$ref":"#/$defs/none"}', "null"],
  ['{"$ref":"https://example.com/schema"}', "null"],
  ['{"$ref":"#/constructor"}', "null"],
  ['{"$ref":"#/$defs/a","$defs":{"a":false}}'],
  ['{"$ref":"#"}'],
  [
    '{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/node"},' +
    '{"type":"null"}]},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["next","children"]}}}',
    '{"next":null,"children":[]}',
  ],
  ['{"$defs":{"a":{"const":1}},"prefixItems":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"minItems":2}', "[1,1]"],
];

Deno.test("smallestInstance() returns the smallest value that a schema allows", () => {
  for (const [schema, value] of cases) {
    const found = smallestInstance(parseJson(schema));
    assertEquals(found === undefined ? undefined : writeJson(found), value, schema);
  }
});

Deno.test("smallestInstance() ends for infinite schemas", () => {
  let deep: Json = { type: "string" };
  for (let level = 0; level < 2_000; level++) deep = { type: "array", items: deep, minItems: 1 };
  const doubling: Json = { $defs: { d0: { type: "string" } } };
  const defs: Record<string, Json> = { d0: { type: "string" } };
  for (let level = 1; level <= 40; level++) {
    const ref = { $ref: `#/$defs/d${level - 1}` };
    defs[`d${level}`] = { type: "array", prefixItems: [ref, ref], minItems: 2 };
  }
  Object.assign(doubling, { $defs: defs, $ref: "#/$defs/d40" });
  const branch = (level: number): Json => level === 0 ? false : { anyOf: [branch(level - 1), branch(level - 1)] };
  const schemas: Json[] = [
    deep,
    doubling,
    branch(14),
    { type: "array", minItems: 1e15 },
    { type: "string", minLength: 1e15 },
    { type: "object", required: ["a"], properties: { a: { $ref: "#" } } },
  ];
  const begin = workedMs();
  for (const schema of schemas) assertEquals(smallestInstance(schema), undefined);
  assertLess(workedMs() - begin, 5_000);
});
