import { assertEquals, assertThrows } from "@std/assert";
import { z } from "zod";
import { expectThat, Mismatch, shaped, show } from "../../lib/conform/check.ts";
import { bodiesOf, readWire } from "../../lib/conform/sse.ts";

Deno.test("readWire() parses a valid stream without faults", () => {
  assertEquals(readWire(': keep-alive\n\nevent: a\ndata: {"x":1}\n\ndata: [DONE]\n\n'), {
    events: [{ name: "a", data: '{"x":1}' }, { data: "[DONE]" }],
    comments: ["keep-alive"],
    faults: [],
  });
});

Deno.test("readWire() names everything that strict clients fail on", () => {
  const cases: [string, string][] = [
    ["\ufeffdata: 1\n\n", "a byte order mark at the beginning"],
    ["data: 1\r\n\r\n", "line ends with CR"],
    ["data:1\n\n", '"data:1": no space after the colon'],
    ["id: 7\ndata: 1\n\n", 'a line that is not an event: "id: 7"'],
    ["data: 1\ndata: 2\n\n", "an event with several data lines"],
    ["data: 1\n", "a last event without its blank line"],
    ["data: 1", "a last event without its blank line"],
    ["event: a\n\ndata: 1\n\n", 'an event "a" without data'],
    ["<html>\n\n", 'a line that is not an event: "<html>"'],
  ];
  for (const [text, fault] of cases) assertEquals(readWire(text).faults.includes(fault), true, JSON.stringify(text));
});

Deno.test("bodiesOf() rejects data that is not an object", () => {
  assertEquals(bodiesOf(readWire('data: {"a":1}\n\ndata: [DONE]\n\n')), [{ a: 1 }]);
  for (const data of ["[1]", "null", ": keep", "{"]) {
    assertThrows(() => bodiesOf(readWire(`data: ${data}\n\n`)), Mismatch);
  }
});

Deno.test("a mismatch reports expected and received values", () => {
  const form = z.object({ choices: z.array(z.object({ index: z.literal(0) })) });
  const error = assertThrows(() => shaped(form, { choices: [{ index: 3 }] }), Mismatch);
  assertEquals([error.expected, error.seen], [
    "the body: choices.0.index to be right (Expected 0)",
    "3",
  ]);
  assertEquals(assertThrows(() => expectThat(false, "x", undefined), Mismatch).seen, "nothing");
  assertEquals(show("a\n b".repeat(200)).length, 201);
});
