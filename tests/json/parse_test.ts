import { assert, assertEquals, assertInstanceOf, assertLess, assertStrictEquals } from "@std/assert";
import {
  isObject,
  isRawNumber,
  type Json,
  JSON_LIMITS,
  JsonError,
  parseDocument,
  parseJson,
  scanMembers,
  shapes,
  writeJson,
} from "../../lib/json/mod.ts";
import { parseAtOnce } from "../../lib/json/parse.ts";

import { seeded } from "../support/random.ts";
import { rounds, skipInQuick } from "../support/skip.ts";
import { workedMs } from "../support/turns.ts";

const ROOMY = { depth: 1000, nodes: 1e6, keys: 1e6 };

/** The error that parsing ends in, or `undefined`. */
function errorOf(text: string, limits = JSON_LIMITS): JsonError | undefined {
  try {
    parseJson(text, limits);
  } catch (error) {
    assertInstanceOf(error, JsonError);
    return error;
  }
  return undefined;
}

Deno.test("parseJson() and writeJson() keep the text of every number", () => {
  const numbers = "0 -0 1.0 -1.50 1e400 -1e400 1E5 1e-7 9007199254740993 12345678901234567890".split(" ");
  for (const number of [...numbers, "0.1", "5e-324", "123456789012345", "-7", "1e21", "0.10", "0e0"]) {
    assertEquals(writeJson(parseJson(number)), number);
    const nested = `{"a":[${number},1,"x"],"b":{"c":${number}}}`;
    assertEquals(writeJson(parseJson(nested)), nested);
  }
});

Deno.test("parseJson() converts numbers that fit a double", () => {
  assertEquals(parseJson('{"a":1,"b":-2.5,"c":1e+21}'), { a: 1, b: -2.5, c: 1e21 });
  const [big, half] = parseJson("[9007199254740993, 0.5]") as Json[];
  assert(isRawNumber(big));
  assertEquals(big.rawJSON, "9007199254740993");
  assertStrictEquals(half, 0.5);
});

Deno.test("parseAtOnce() reports the positions of top-level members, and whether a number is raw", () => {
  const text = ' { "a" :1, "b":{"a":[2,{"c":3}]} , "\\u0063":"}\\"," }';
  const { members, hasRaw } = parseAtOnce(text);
  assertEquals(members.map(({ name, start, end }) => [name, text.slice(start, end)]), [
    ["a", "1"],
    ["b", '{"a":[2,{"c":3}]}'],
    ["c", '"}\\","'],
  ]);
  assertEquals(members.map(({ before }) => text.charAt(before)), [" ", ",", ","]);
  assertEquals(hasRaw, false);
  assertEquals(parseAtOnce('{"a":[1.0]}').hasRaw, true);
  for (const text of ["{}", "[]", '[{"a":1}]', '"a"', " 1 "]) assertEquals(parseAtOnce(text).members, [], text);
});

Deno.test("isObject() is true only for JSON objects, including one with a member rawJSON", () => {
  assert(isObject(parseJson("{}")));
  assert(isObject(parseJson('{"rawJSON":"1"}')));
  for (const text of ["[]", "null", "1", "1.0", '"x"', "true"]) assert(!isObject(parseJson(text)), text);
  assert(!isRawNumber(parseJson('{"rawJSON":"1"}')));
});

Deno.test("parseJson() treats __proto__ and constructor as plain data", () => {
  const text = '{"__proto__":{"admin":true},"constructor":1,"a":{"__proto__":null}}';
  const value = parseJson(text);
  assert(isObject(value));
  assert(Object.hasOwn(value, "__proto__"));
  assertStrictEquals(Object.getPrototypeOf(value), Object.prototype);
  assertStrictEquals(value["admin"], undefined);
  assertEquals(writeJson(value), text);
  const raw = text.replace("1,", "1.0,");
  assertEquals(writeJson(parseJson(raw)), raw);
});

Deno.test("parseJson() reports the position of a syntax error", () => {
  const cases: [text: string, position: number, message: string][] = [
    ["", 0, "Expected a value"],
    ["  ", 2, "Expected a value"],
    ["{", 1, "Expected a member name in double quotes"],
    ['{"a"', 4, 'Expected ":"'],
    ['{"a":', 5, "Expected a value"],
    ['{"a":1', 6, 'Expected "," or "}"'],
    ['{"a":1,}', 7, "Expected a member name in double quotes"],
    ["[1,]", 3, "Expected a value"],
    ["[1 2]", 3, 'Expected "," or "]"'],
    ["[1}", 2, 'Expected "," or "]"'],
    ["{a:1}", 1, "Expected a member name in double quotes"],
    ["{'a':1}", 1, "Expected a member name in double quotes"],
    ['{"a":1} x', 8, "Expected nothing after the value"],
    ["1 2", 2, "Expected nothing after the value"],
    ["01", 1, "Expected nothing after the value"],
    ["-", 1, "Expected a digit"],
    ["1.", 2, "Expected a digit"],
    ["[1.e5]", 3, "Expected a digit"],
    ["1e+", 3, "Expected a digit"],
    ["+1", 0, "Expected a value"],
    ["NaN", 0, "Expected a value"],
    ["[tru]", 1, "Expected a value"],
    ["nulls", 4, "Expected nothing after the value"],
    ['"abc', 4, 'Expected a closing "'],
    ['"abc\\"', 6, 'Expected a closing "'],
    ['{"a":"x\ny"}', 7, "Expected control characters in strings to be escaped"],
    ['{"a":"x\ny', 7, "Expected control characters in strings to be escaped"],
    ['["\\x"]', 3, 'Expected an escape: one of " \\ / b f n r t u'],
    ['["\\u12G4"]', 6, "Expected four hexadecimal digits"],
    ['["\\\\\\u12"]', 8, "Expected four hexadecimal digits"],
    ['{"\\q":1}', 3, 'Expected an escape: one of " \\ / b f n r t u'],
    ['["a\u0000"] trailing', 3, "Expected control characters in strings to be escaped"],
    ["\u00a01", 0, "Expected a value"],
    ["/*x*/1", 0, "Expected a value"],
  ];
  for (const [text, position, message] of cases) {
    const error = errorOf(text);
    assertEquals([error?.position, error?.message], [position, message], JSON.stringify(text));
  }
});

Deno.test("parseJson() rejects duplicate names in the outermost levels, in any spelling", () => {
  for (
    const text of [
      '{"model":1,"model":2}',
      '{"model":1,"\\u006dodel":2}',
      '{"a":{"b":1,"b":1}}',
      '[{"b":1,"b":1}]',
      '{"__proto__":1,"__proto__":2}',
    ]
  ) assertEquals(errorOf(text)?.message.startsWith("Expected each member once"), true, text);
  for (const text of ['{"a":[{"b":{"c":1,"c":2}}]}', `{"a":[{"b":{"c":1,"c":2}}],"d":"${"x".repeat(100_000)}"}`]) {
    assertEquals(errorOf(text), undefined, text);
    const error = errorOf(text, { ...JSON_LIMITS, unique: Infinity });
    assertEquals(error?.message.startsWith("Expected each member once"), true, text);
  }
  // Similar names, and numbers that are kept as text, are not equal names.
  for (const text of ['{"1":{"1":1},"a":[{"a":1},{"a":1}],"\\u0031 ":1.0}', '[{"a":1},{"a":1.0},-0]', "[[[]],1.0]"]) {
    assertEquals(errorOf(text), undefined, text);
  }
});

Deno.test("parseJson() reports the first of two errors", () => {
  const cases: [text: string, position: number][] = [
    ['{"a":1,"a":2,}', 7],
    ['{"a":1,"b":{"c":1,"c":"\\x"}}', 18],
    ['{"a":"\\x","a":2}', 7],
    ['{"a":"\n","b":1,"b":2', 6],
  ];
  for (const [text, position] of cases) assertEquals(errorOf(text)?.position, position, text);
});

Deno.test("parseJson() stops at the limits", () => {
  const limits = { depth: 3, nodes: 6, keys: 2 };
  assertEquals(errorOf("[[[]]]", limits), undefined);
  assertEquals(errorOf("[[[[]]]]", limits)?.position, 3);
  assertEquals(errorOf("[1,2,3,4,5]", limits), undefined);
  assertEquals(errorOf("[1,2,3,4,5,6]", limits)?.position, 11);
  assertEquals(errorOf('{"a":1,"b":2}', limits), undefined);
  assertEquals(errorOf('{"a":1,"b":2,"c":3}', limits)?.position, 13);
});

Deno.test("parseJson() rejects bombs before it spends time on them", {
  ignore: skipInQuick("JSON texts of megabytes"),
}, () => {
  const bombs: [name: string, text: string][] = [
    ["depth of 1 million", "[".repeat(1_000_000) + "]".repeat(1_000_000)],
    ["300,000 members", `{${Array.from({ length: 300_000 }, (_, key) => `"k${key}":1`).join()}}`],
    ["3 million numbers", `[${"1,".repeat(3_000_000)}1]`],
    ["300,000 long numbers", `[${"1.0000000000000000001,".repeat(300_000)}1]`],
    ["2 million open objects", '{"a":'.repeat(2_000_000)],
    ["backslashes without an end", `"${"\\".repeat(5_000_000)}`],
    ["a number of 5 million digits", `[${"1".repeat(5_000_000)}]`],
    ["escaped quotes without an end", `"${'\\"'.repeat(3_000_000)}`],
  ];
  for (const [name, text] of bombs) {
    const start = workedMs();
    assert(errorOf(text) !== undefined, name);
    // Each takes a few tenths of a second at most; quadratic time would be minutes.
    assertLess(workedMs() - start, 30_000, name);
  }
});

Deno.test("parseJson() accepts exactly what JSON.parse() accepts, with equal values", () => {
  const { below } = seeded(7);
  const seeds = [
    '{"model":"a/b","messages":[{"role":"user","content":"hi \\u00e9 \\"x\\" \\\\"}],"n":1,"t":-0.5e-3,"s":null,"b":[true,false,{}]}',
    '[[],[{}],{"a":[]},"",0,-1,1e5,"\\ud83d\\ude00"]',
  ];
  const alphabet = '{}[]",:\\0123456789.eE+-truefalsn u \n\t\u0001';
  let refused = 0;
  const runs = rounds(30_000);
  for (let run = 0; run < runs; run++) {
    let text = seeds[run % seeds.length] ?? "";
    for (let edits = 1 + below(3); edits > 0; edits--) {
      const at = below(text.length);
      const insert = below(2) === 0 ? "" : alphabet.charAt(below(alphabet.length));
      text = text.slice(0, at) + insert + text.slice(at + below(3));
    }
    let expected: unknown;
    let valid = true;
    try {
      expected = JSON.parse(text);
    } catch {
      valid = false;
      refused++;
    }
    const error = errorOf(text, ROOMY);
    if (error?.message.startsWith("Expected each member once")) continue;
    assertEquals(error === undefined, valid, text);
    if (valid) {
      const { value, members } = parseAtOnce(text, ROOMY);
      assertEquals(JSON.parse(writeJson(value)), expected, text);
      assertEquals(members, isObject(value) ? scanMembers(text).members : [], text);
    } else assert(error !== undefined && error.position >= 0 && error.position <= text.length, text);
  }
  assert(refused > runs / 3 && refused < runs);
});

Deno.test("parseJson() reports a position close to the engine's", () => {
  // The engine reports a position for most faults; ours must be the same.
  let compared = 0;
  for (
    const text of [
      '{"a":1,"b":[1,2,{"c":"d"}],"e":tru}',
      '["a","\\u00zz"]',
      '{"a" 1}',
      "[1,2",
      '{"a":"b\u0002"}',
      "[-a]",
    ]
  ) {
    try {
      JSON.parse(text);
    } catch (error) {
      const position = /at position (\d+)/.exec(String(error))?.[1];
      if (position === undefined) continue;
      compared++;
      const ours = errorOf(text)?.position ?? -1;
      assert(ours <= Number(position) && ours >= Number(position) - 3, `${text}: ${ours}, engine ${position}`);
    }
  }
  assert(compared >= 4);
});

Deno.test("parseDocument() converts raw numbers near the top to doubles and leaves the others", async () => {
  const text = '{"a":1.0,"b":-0,"c":1E2,"d":0.250,"e":1e400,"f":12345678901234567890,"g":[2.0],"h":{"i":{"j":3.0}}}';
  const { value } = await parseDocument(text, { doubleLevels: 2 });
  assertEquals(
    writeJson(value),
    '{"a":1,"b":0,"c":100,"d":0.25,"e":1e400,"f":12345678901234567890,"g":[2.0],"h":{"i":{"j":3.0}}}',
  );
});

Deno.test("parseDocument() scans sealed texts in time that grows with their own length", async () => {
  const { list, sealedText } = shapes;
  const plan = { needed: [], maxMarks: 0, maxImages: 0, isWanted: () => true };
  const scan = { ...plan, shapes: new Map([["sealed", list(sealedText, { max: Infinity })]]) };
  // No backslash is left in memory behind the body.
  await parseDocument(new TextEncoder().encode(`"${"x".repeat(1_000_000)}"`));
  const body = new TextEncoder().encode(JSON.stringify({ sealed: Array(19_000).fill("QUJD") }));
  const start = workedMs();
  const { scanned } = await parseDocument(body, { scan });
  assertEquals(scanned?.sizes.sealed, 19_000);
  // Searching all memory after each text would take more than ten seconds.
  assertLess(workedMs() - start, 3_000);
});

Deno.test("parseDocument() keeps every name of a body that is scanned first and then parsed", async () => {
  const random = seeded(1);
  const scan = { shapes: new Map(), needed: [], maxMarks: 0, maxImages: 0, isWanted: () => false };
  // There are more names than the parser caches, so some replace others within one body.
  const names = Array.from({ length: 4_000 }, (_, index) => `name_${index}`);
  for (let round = 0; round < 200; round++) {
    const member = (): [
      string,
      Json,
    ] => [random.pick(names), random.chance(0.3) ? { [random.pick(names)]: 1 } : "text"];
    const body = { ...Object.fromEntries(Array.from({ length: 40 }, member)), model: "acme/one" };
    const { value } = await parseDocument(new TextEncoder().encode(JSON.stringify(body)), { scan });
    assertEquals(value, body);
  }
});
