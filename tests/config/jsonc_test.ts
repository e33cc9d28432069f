import { assertEquals, assertThrows } from "@std/assert";
import { lineAndColumnAt, parseJsonc } from "../../lib/config/jsonc.ts";
import { JsonError } from "../../lib/json/mod.ts";

Deno.test("parseJsonc() reads JSON with comments and trailing commas", () => {
  const cases: [string, unknown][] = [
    ["{}", {}],
    ["[]", []],
    [' // a\n{ "a": /* b */ 1, } // c', { a: 1 }],
    ["[1, 2.5, -3e2, true, false, null,]", [1, 2.5, -300, true, false, null]],
    ['{"a": {"b": [{"c": "//no comment /* here */"}]}}', { a: { b: [{ c: "//no comment /* here */" }] } }],
    [String.raw`"a\"b\\\u00e9\n"`, 'a"b\\é\n'],
    ["\ufeff1", 1],
    ["/**/1/***/", 1],
  ];
  for (const [text, value] of cases) assertEquals(parseJsonc(text), value, text);
});

Deno.test("parseJsonc() keeps __proto__ as an ordinary member", () => {
  const value = parseJsonc('{"__proto__": {"a": 1}}');
  assertEquals(Object.getPrototypeOf(value), Object.prototype);
  assertEquals(Object.keys(value ?? {}), ["__proto__"]);
});

Deno.test("parseJsonc() reports errors with line and column", () => {
  const cases: [string, number, number, string][] = [
    ["", 1, 1, "the text ends"],
    ["{\n  a: 1\n}", 2, 3, "name of a member"],
    ['{\n  "a": 1\n  "b": 2\n}', 3, 3, 'Expected "," or "}"'],
    ['{"a" 1}', 1, 6, 'Expected ":"'],
    ["[1,,2]", 1, 4, 'not ","'],
    ["[,]", 1, 2, 'not ","'],
    ["{,}", 1, 2, "name of a member"],
    ["{\n/* open", 2, 1, "comment is not closed"],
    ['["open]', 1, 2, "string is not closed"],
    [String.raw`["\x"]`, 1, 2, "escape"],
    ["[01]", 1, 3, 'Expected "," or "]"'],
    ["[undefined]", 1, 2, 'not "undefined"'],
    ["[-]", 1, 2, 'not "-"'],
    ["1 2", 1, 3, "end of the text"],
    ['{"a": 1,\n "a": 2}', 2, 2, "twice"],
    ["[".repeat(100), 1, 66, "deeper"],
    ['{"a": 1', 1, 8, "the text ends"],
  ];
  for (const [text, line, column, words] of cases) {
    const error = assertThrows(() => parseJsonc(text), JsonError, words, text);
    assertEquals(lineAndColumnAt(text, error.position), { line, column }, text);
  }
});
