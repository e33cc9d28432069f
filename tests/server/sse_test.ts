import { assertEquals, assertLess, assertThrows } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { formatFrame, SseReader } from "../../lib/server/sse.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import { workedMs } from "../support/turns.ts";

/** All frames of a text that is read in pieces of this size. */
function readIn(text: string, size: number): Frame[] {
  const reader = new SseReader();
  const frames: Frame[] = [];
  for (let at = 0; at < text.length; at += size) frames.push(...reader.push(text.slice(at, at + size)));
  return [...frames, ...reader.end()];
}

Deno.test("formatFrame() writes LF lines with a space after the colon", () => {
  assertEquals(formatFrame({ data: "[DONE]" }), "data: [DONE]\n\n");
  assertEquals(formatFrame({ event: "ping", data: '{"a":1}' }), 'event: ping\ndata: {"a":1}\n\n');
  assertEquals(formatFrame({ data: "" }), "data: \n\n");
});

Deno.test("formatFrame() rejects line breaks", () => {
  for (const bad of ["a\nb", "a\rb", "\r\n", "x\ndata: y"]) {
    assertThrows(() => formatFrame({ data: bad }), RangeError, "data");
    assertThrows(() => formatFrame({ event: bad, data: "x" }), RangeError, "name");
  }
});

Deno.test("SseReader reads the output of formatFrame()", () => {
  const frames = [{ data: "[DONE]" }, { event: "a", data: "{}" }, { data: "" }, { data: " x" }, {
    event: "b:c",
    data: ": y",
  }];
  assertEquals(readIn(frames.map(formatFrame).join(""), 1000), frames);
});

Deno.test("SseReader follows the specification, split anywhere", () => {
  const cases: [text: string, frames: Frame[]][] = [
    ["", []],
    ["\n\n\n", []],
    ["data: a\n\n", [{ data: "a" }]],
    ["data: a\r\n\r\ndata: b\r\rdata: c\n\n", [{ data: "a" }, { data: "b" }, { data: "c" }]],
    ["data: a\r\n\ndata: b\r\r\n", [{ data: "a" }, { data: "b" }]],
    ["\ufeffdata: a\n\n", [{ data: "a" }]],
    ["\ufeff\n\ufeffdata: a\n\n", []],
    ["data:a\ndata: b\ndata\ndata:  c\n\n", [{ data: "a\nb\n\n c" }]],
    [": comment\ndata: a\n: more\n\n:\n\n", [{ data: "a" }]],
    ["event: x\ndata: a\n\ndata: b\n\n", [{ event: "x", data: "a" }, { data: "b" }]],
    ["event: x\n\ndata: b\n\n", [{ data: "b" }]],
    ["event: x\nevent:\ndata: b\n\n", [{ data: "b" }]],
    ["id: 1\nretry: 5\nfoo: bar\nDATA: x\n data: y\ndata: a\n\n", [{ data: "a" }]],
    ["data:{}\n\n", [{ data: "{}" }]],
    ["data:\n\n", [{ data: "" }]],
    ["data: a:b: c\n\n", [{ data: "a:b: c" }]],
    ["data: a\n\ndata: cut off", [{ data: "a" }, { data: "cut off" }]],
    ["event: x\ndata: a\n", [{ event: "x", data: "a" }]],
    ["event: x\n", []],
    ["data: \u20ac \ud83d\ude00\u2028\n\n", [{ data: "\u20ac \ud83d\ude00\u2028" }]],
  ];
  for (const [text, frames] of cases) {
    for (const size of [1, 2, 3, 7, 64, 1000]) {
      assertEquals(readIn(text, size), frames, `${JSON.stringify(text)} by ${size}`);
    }
  }
});

Deno.test("SseReader returns an event at its blank line, even after CR at the end of a chunk", () => {
  const reader = new SseReader();
  assertEquals(reader.push("data: a\r\n\r"), [{ data: "a" }]);
  assertEquals(reader.push("\ndata: b\n"), []);
  assertEquals(reader.push(""), []);
  assertEquals(reader.push("\n"), [{ data: "b" }]);
  assertEquals(reader.end(), []);
});

Deno.test("SseReader stops at an event over the limit, in one line or several", () => {
  for (
    const text of ["x".repeat(101), "data: x\n".repeat(60), `: ${"x".repeat(101)}\n`, `event: ${"x".repeat(101)}\n`]
  ) {
    for (const size of [1, 64]) {
      const error = assertThrows(() => {
        const reader = new SseReader(100);
        for (let at = 0; at < text.length; at += size) reader.push(text.slice(at, at + size));
      }, GatewayError);
      assertEquals(error.kind, "upstream");
    }
  }
  const reader = new SseReader(100);
  for (let event = 0; event < 100; event++) assertEquals(reader.push(`data: ${"x".repeat(80)}\n\n`).length, 1);
});

Deno.test("SseReader is linear, even for one long line in small chunks", () => {
  const start = workedMs();
  const reader = new SseReader();
  reader.push("data: ");
  for (let chunk = 0; chunk < 100_000; chunk++) reader.push("x".repeat(80));
  assertEquals(reader.push("\n\n")[0]?.data.length, 8_000_000);
  assertLess(workedMs() - start, 5_000);
});
