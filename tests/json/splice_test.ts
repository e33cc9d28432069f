import { assert, assertEquals } from "@std/assert";
import {
  documentSize,
  findValue,
  type JsonObject,
  memberText,
  parseDocument,
  removePaths,
  scanMembers,
  spliceBody,
  spliceMembers,
  withoutPaths,
  writeMembersSliced,
} from "../../lib/json/mod.ts";
import { replaceSpan } from "../../lib/text.ts";

Deno.test("spliceMembers() replaces, adds and removes members and keeps the rest as written", () => {
  const cases: [string, Record<string, string | undefined>, string][] = [
    ['{"model":"a","n":1.0}', { model: '"b"' }, '{"model":"b","n":1.0}'],
    ['{ "model" : "a" , "x":12345678901234567890 }', { model: '"b"' }, '{ "model" : "b" , "x":12345678901234567890 }'],
    ['{"a":1,"provider":{"x":"}"},"b":2}', { provider: undefined }, '{"a":1,"b":2}'],
    ['{"provider":1,"b":2}', { provider: undefined }, '{"b":2}'],
    ['{"a":1,"provider":[1,{"}":"\\""}]}', { provider: undefined }, '{"a":1}'],
    ['{"provider":1}', { provider: undefined }, "{}"],
    ['{"a":1,"b":2,"c":3}', { a: undefined, b: undefined }, '{"c":3}'],
    ['{"a":1,"b":2,"c":3}', { a: undefined, c: undefined }, '{"b":2}'],
    ['{"a":1,"b":2}', { a: undefined, b: undefined, c: "3" }, '{"c":3}'],
    ["{}", { a: "1" }, '{"a":1}'],
    ['{"a":1}', { b: "true" }, '{"a":1,"b":true}'],
    ['{"a":1}', { b: undefined }, '{"a":1}'],
    ['{"mod\\u0065l":"a"}', { model: '"b"' }, '{"mod\\u0065l":"b"}'],
    ['{"model":"a","inner":{"model":"c"}}', { model: '"b"' }, '{"model":"b","inner":{"model":"c"}}'],
    ['\n{"a":"\\\\","model":"x"}\n', { model: '"y"' }, '\n{"a":"\\\\","model":"y"}\n'],
    ['{"constructor":1,"__proto__":{"a":2},"m":3}', { m: "4" }, '{"constructor":1,"__proto__":{"a":2},"m":4}'],
  ];
  for (const [text, edits, expected] of cases) assertEquals(spliceMembers(text, edits), expected, text);
});

Deno.test("spliceMembers() equals editing the parsed object, for every set of members", () => {
  const names = ["a", "b", "c", "d"];
  for (let present = 0; present < 16; present++) {
    for (let removed = 0; removed < 16; removed++) {
      const object = Object.fromEntries(
        names.filter((_, bit) => (present & (1 << bit)) !== 0).map((name) => [name, 1]),
      );
      const edits = Object.fromEntries(
        names.map((name, bit) => [name, (removed & (1 << bit)) !== 0 ? undefined : "2"]),
      );
      const expected = Object.fromEntries(
        Object.entries(edits).filter(([, value]) => value !== undefined).map(([name]) => [name, 2]),
      );
      assertEquals(JSON.parse(spliceMembers(JSON.stringify(object, null, 1), edits)), expected);
    }
  }
});

Deno.test("spliceBody() equals spliceMembers() in UTF-8", async () => {
  const names = ["é", "b", "字", "😀"];
  for (let present = 0; present < 16; present++) {
    for (let removed = 0; removed < 81; removed++) {
      const text = JSON.stringify(
        Object.fromEntries(names.filter((_, bit) => (present & (1 << bit)) !== 0).map((name) => [name, `${name}😀`])),
        null,
        1,
      );
      const edits = Object.fromEntries(
        names.map((name, digit) => [name, Math.floor(removed / 3 ** digit) % 3] as const)
          .filter(([, how]) => how > 0).map(([name, how]) => [name, how === 1 ? undefined : '"ü"']),
      );
      const document = await parseDocument(new TextEncoder().encode(text));
      const pieces = spliceBody(document, edits);
      assert(typeof pieces !== "string");
      const content = pieces.map((piece) => typeof piece === "string" ? piece : new TextDecoder().decode(piece)).join(
        "",
      );
      assertEquals(content, spliceMembers(document, edits), text);
      assertEquals(content, spliceMembers(text, edits), text);
    }
  }
});

Deno.test("findValue() follows a path of names", () => {
  const text = '{"a":{"model":"x","b":[{"model":1}]},"model":"y"}';
  const at = (path: string[]) => {
    const span = findValue(text, path);
    return span && text.slice(span.start, span.end);
  };
  assertEquals(at(["model"]), '"y"');
  assertEquals(at(["a", "model"]), '"x"');
  assertEquals(at(["a", "b"]), '[{"model":1}]');
  assertEquals(at(["a", "c"]), undefined);
  assertEquals(at(["model", "x"]), undefined);
});

Deno.test("findValue() returns nothing for invalid JSON", () => {
  for (
    const text of [
      "",
      "{",
      '{"',
      '{"model',
      '{"model"',
      '{"model":',
      '{"model":"',
      '{"model":[',
      "[1,2",
      "nonsense",
      '{"a" 1}',
    ]
  ) {
    const span = findValue(text, ["model"]);
    if (span !== undefined) replaceSpan(text, span, '"x"');
  }
});

Deno.test("removePaths() removes the member at a path and keeps the rest as written", () => {
  const cases: [string, string[], string][] = [
    ['{ "a":1 , "b":{"c": 2,"d":1.0} }', ["b", "c"], '{ "a":1 , "b":{"d":1.0} }'],
    ['{ "a":1 , "b":{"c": 2} }', ["a"], '{ "b":{"c": 2} }'],
    ['{"a":{"a":{"a":1,"b":2}}}', ["a", "a", "a"], '{"a":{"a":{"b":2}}}'],
    ['{"a":1}', ["b"], '{"a":1}'],
    ['{"a":1}', ["a", "b"], '{"a":1}'],
    ['{"a":1}', [], '{"a":1}'],
  ];
  for (const [text, path, expected] of cases) assertEquals(removePaths(text, [path]), expected, text);
});

Deno.test("memberText() and documentSize() use a body's bytes, or else its text", async () => {
  const text = '{"a":"字", "stream_options": {"b":"é"},"c":1}';
  const body = scanMembers(text);
  const bytes = new TextEncoder().encode(text);
  const { utf8 } = await parseDocument(bytes);
  const inBytes = { text: "not looked at", members: [], utf8 };
  for (const each of [body, inBytes]) {
    assertEquals(["a", "stream_options", "c", "d"].map((name) => memberText(each, name)), [
      '"字"',
      '{"b":"é"}',
      "1",
      undefined,
    ]);
  }
  assertEquals([documentSize(body), documentSize(inBytes)], [text.length, bytes.length]);
});

Deno.test("writeMembersSliced() writes an object with the positions of its members", async () => {
  const objects: JsonObject[] = [{}, { a: 1 }, { 'ä"': "x", list: [1, { b: null }], long: '"'.repeat(600_000) }];
  for (const object of objects) {
    assertEquals(await writeMembersSliced(object), scanMembers(JSON.stringify(object)));
  }
});

Deno.test("removePaths() and withoutPaths() remove several values as if they were removed one by one, the last first", () => {
  const text = '{ "a" : [ 1 , {"x":[2,3],"y":"]"} , 4 ] , "b":{"c":1,"d":{"e":[]}} , "f":null }';
  const paths = [
    ["a", 0],
    ["a", 1, "x", 0],
    ["a", 1, "x", 1],
    ["a", 1, "y"],
    ["a", 2],
    ["b", "c"],
    ["b", "d", "e"],
    [
      "b",
      "d",
    ],
    ["f"],
    ["a"],
    ["g"],
    ["b", "c", "d"],
  ];
  for (let chosen = 0; chosen < 2 ** paths.length; chosen += 7) {
    const some = paths.filter((_, at) => (chosen >> at) & 1);
    const oneByOne = some.toSorted().toReversed().reduce((left, path) => removePaths(left, [path]), text);
    assertEquals(removePaths(text, some), oneByOne, JSON.stringify(some));
    assertEquals(withoutPaths(JSON.parse(text), some), JSON.parse(removePaths(text, some)));
  }
});
