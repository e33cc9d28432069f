import { assertEquals, assertThrows, fail } from "@std/assert";
import { objectOfMembers, parseJson, parsePlain, tryParse } from "../../lib/json/mod.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import { UPSTREAM_CODECS } from "../../lib/upstreams/protocols.ts";

Deno.test("parsePlain() reads a name as written, whatever was read before", () => {
  const names = ["\\/", "\\n", "\\u0041", "\\\\", "a\\/", "\\ud83d\\ude42", "a\\\\\\n", '\\"', '\\":'];
  for (const name of names) {
    const parsed: string = JSON.parse(`"${name}"`);
    for (const [before, behind] of [["", ""], ['{"x":', "}"], ['["\\n",', "]"], ['{"x":"a\\\\","y":', "}"]]) {
      // The engine's guess for the next name: of the same length, and with the same beginning as the escape.
      const guess = JSON.stringify(name.slice(0, parsed.length));
      JSON.parse(`${before}{"b":1,${guess}:2}${behind}`);
      for (const space of ["", " ", "\r\n\t"]) {
        const text = `${before}{"b":1,"${name}"${space}:2}${behind}`;
        assertEquals(parsePlain(text), parseJson(text), text);
      }
    }
  }
});

Deno.test("parsePlain() reads numbers as doubles, with or without escaped names", () => {
  const numbers = ["1.0", "-0", "429e0", "12345678901234567890", "1e400", "0.10", "7"];
  for (const name of ["n", "\\u006e", "__proto__", "__proto_\\u005f"]) {
    const text = `{"${name}":[${numbers}],"m":{"${name}":1.0}}`;
    assertEquals(parsePlain(text), JSON.parse(text), text);
  }
});

Deno.test("parsePlain() reads everything else like the runtime, independent of earlier texts", () => {
  for (const text of ['{"a":1.0,"a":[2,"\\n","\\\\"]}', '"\\":"', '["\\":",":"]', '{"a":"\\"","b":"\\\\"}', " 1 "]) {
    assertEquals(parsePlain(text), JSON.parse(text), text);
  }
  for (const text of ["", "\\", '"\\', '{"\\', '{"c":1,"\\\\"', '{"c":1,"\\\\":}', '{"a":"\\x"}']) {
    assertThrows(() => parsePlain(text), SyntaxError, undefined, text);
  }
  assertEquals(JSON.parse('{"c":1,"\\/":2}'), { c: 1, "/": 2 });
});

Deno.test("parsePlain() finds the names of an answer independent of earlier answers", () => {
  const streams = {
    chat: '"choices":[{"index":0,"delta":{"content":"word"}}]',
    responses: '"delta":"word","output_index":0,"content_index":0',
    messages: '"delta":{"type":"text_delta","text":"word"},"index":0',
    gemini: '"candidates":[{"content":{"parts":[{"text":"word"}]}}]',
  };
  const types = { chat: "", responses: "response.output_text.delta", messages: "content_block_delta", gemini: "" };
  for (const [protocol, members] of Object.entries(streams) as [keyof typeof streams, string][]) {
    const name = /"(\w+)"/.exec(members)?.[1] ?? "";
    const stem = name.slice(0, -1);
    const escaped = `${stem}\\u${name.charCodeAt(stem.length).toString(16).padStart(4, "0")}`;
    const frame = (written: string): Frame => ({
      data: `{"type":"${types[protocol]}",${members.replace(name, () => written)}}`,
    });
    const read = (written: string) => {
      const reader = UPSTREAM_CODECS[protocol].reader({ issuer: "x" });
      const block = '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}';
      const start = '{"type":"message_start","message":{"id":"m"}}';
      const opening = protocol === "messages" ? [start, block].flatMap((data) => reader.push({ data })) : [];
      return [...opening, ...reader.push(frame(written))];
    };
    const expected = read(name);
    read(`${stem}\\\\`);
    assertEquals(read(escaped), expected, protocol);
    assertEquals(JSON.stringify(expected).includes("word"), true, protocol);
  }
});

Deno.test("tryParse() returns undefined for text that is not JSON, and throws other errors", () => {
  assertEquals([tryParse("{}"), tryParse("{"), tryParse("1", () => parsePlain("]"))], [{}, undefined, undefined]);
  assertThrows(() => tryParse("{}", () => fail("a bug")), Error, "a bug");
});

Deno.test("objectOfMembers() makes the object of few and of many members, whatever their names", () => {
  for (const count of [0, 1, 32, 33, 1_000]) {
    const members = Array.from({ length: count }, (_, at): [string, number] => [at === 5 ? "__proto__" : `m${at}`, at]);
    const object = objectOfMembers(members);
    assertEquals(JSON.stringify(object), JSON.stringify(Object.fromEntries(members)), String(count));
    assertEquals(Object.getPrototypeOf(object), Object.prototype);
  }
});
