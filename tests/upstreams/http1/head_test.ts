import { assert, assertEquals, assertThrows } from "@std/assert";
import { BrokenAnswer } from "../../../lib/upstreams/http1/broken_answer.ts";
import {
  findHeadEnd,
  HEAD_LINES,
  headerOf,
  headText,
  LINE_BYTES,
  parseHead,
} from "../../../lib/upstreams/http1/head.ts";

const bytesOf = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));

/** Reads a head that comes in two pieces, behind what another answer left. */
function readSplit(text: string, split: number): { end: number; looks: number } {
  const before = "xx\r\n\r\n";
  const bytes = bytesOf(before + text);
  const start = before.length;
  const first = findHeadEnd(bytes, { start, seen: start, end: start + split });
  if (first >= 0) return { end: first - start, looks: 1 };
  return { end: findHeadEnd(bytes, { start, seen: start + split, end: bytes.length }) - start, looks: 2 };
}

Deno.test("a head is read whole, wherever it is split", () => {
  const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Empty:\r\nx-two: a\r\nX-Two: \t b\t \r\n\r\n";
  for (let split = 0; split <= head.length; split++) {
    const { end, looks } = readSplit(`${head}data: {}\r\n\r\n`, split);
    assertEquals([end, looks], [head.length, split < head.length ? 2 : 1]);
  }
  const read = parseHead(head);
  assertEquals([read.minor, read.status], [1, 200]);
  assertEquals(read.names, ["content-type", "x-empty", "x-two", "x-two"]);
  assertEquals(read.values, ["text/event-stream", "", "a", "b"]);
  assertEquals([headerOf(read, "x-two"), headerOf(read, "x-empty"), headerOf(read, "x-none")], ["a, b", "", null]);
});

Deno.test("heads that are fine, and those that two readers may read in two ways", () => {
  const line = (text: string) => `HTTP/1.1 200 OK\r\n${text}\r\n\r\n`;
  const cases: [name: string, head: string, fine: boolean][] = [
    ["no reason", "HTTP/1.1 200\r\n\r\n", true],
    ["an empty reason", "HTTP/1.1 200 \r\n\r\n", true],
    ["a reason of any letters", "HTTP/1.0 404 Nicht gefunden: \xfc\r\n\r\n", true],
    ["a value of any letters", line("a: \xe9\xff"), true],
    ["a colon in the value", line("a: b:c"), true],
    ["a name of signs", line("!#$%&'*+-.^_`|~09: x"), true],
    ["a tab in the value", line("a: b\tc"), true],
    ["the longest line", line(`a: ${"x".repeat(LINE_BYTES - 5)}`), true],
    ["as many lines as may be", line(Array(HEAD_LINES).fill("a: b").join("\r\n")), true],
    ["HTTP/2", "HTTP/2 200\r\n\r\n", false],
    ["HTTP/1.2", "HTTP/1.2 200 OK\r\n\r\n", false],
    ["HTTP/0.9", "<html>\r\n\r\n", false],
    ["lower case", "http/1.1 200 OK\r\n\r\n", false],
    ["two spaces", "HTTP/1.1  200 OK\r\n\r\n", false],
    ["a leading space", " HTTP/1.1 200 OK\r\n\r\n", false],
    ["two digits", "HTTP/1.1 99 OK\r\n\r\n", false],
    ["four digits", "HTTP/1.1 2000 OK\r\n\r\n", false],
    ["a status of nobody", "HTTP/1.1 600 OK\r\n\r\n", false],
    ["a status 0", "HTTP/1.1 000 OK\r\n\r\n", false],
    ["a reason without a space", "HTTP/1.1 200OK\r\n\r\n", false],
    ["NUL in the reason", "HTTP/1.1 200 O\0K\r\n\r\n", false],
    ["CR in the reason", "HTTP/1.1 200 O\rK\r\n\r\n", false],
    ["a folded line", line("a: b\r\n c"), false],
    ["a folded line of a tab", line("a: b\r\n\tc"), false],
    ["a fold before the first", "HTTP/1.1 200 OK\r\n a: b\r\n\r\n", false],
    ["space before the colon", line("a : b"), false],
    ["a tab before the colon", line("a\t: b"), false],
    ["no colon", line("a"), false],
    ["no name", line(": b"), false],
    ["a name of two words", line("a b: c"), false],
    ["a name of other letters", line("\xe4: c"), false],
    ["NUL in the name", line("a\0: b"), false],
    ["NUL in the value", line("a: b\0"), false],
    ["a control character", line("a: b\x01"), false],
    ["DEL", line("a: b\x7f"), false],
    ["CR in the value", line("a: b\rc: d"), false],
    ["CR at the value's end", line("a: b\r"), false],
    ["a line too long", line(`a: ${"x".repeat(LINE_BYTES - 4)}`), false],
    ["a line too many", line(Array(HEAD_LINES + 1).fill("a: b").join("\r\n")), false],
    ["a long status line", `HTTP/1.1 200 ${"x".repeat(LINE_BYTES)}\r\n\r\n`, false],
  ];
  for (const [name, head, fine] of cases) {
    const read = () => parseHead(headText(bytesOf(head)));
    if (fine) assert(read().status > 0, name);
    else assertThrows(read, BrokenAnswer, undefined, name);
  }
});

Deno.test("lines that end in a bare LF are refused as soon as they come", () => {
  const cases = ["\n", "\r\n", "HTTP/1.1 200 OK\n", "HTTP/1.1 200 OK\r\na: b\n", "HTTP/1.1 200 OK\r\n\n"];
  for (const text of cases) {
    const bytes = bytesOf(text);
    assertThrows(() => findHeadEnd(bytes, { start: 0, seen: 0, end: bytes.length }), BrokenAnswer, undefined, text);
  }
});

Deno.test("each byte of a head is one character", () => {
  for (let byte = 0; byte < 256; byte++) {
    assertEquals(headText(Uint8Array.of(65, byte, 66)), `A${String.fromCharCode(byte)}B`);
  }
  // What would be one character of UTF-8, and one that UTF-8 cannot mean.
  for (const text of ["\xc3\xa4", "\xef\xbf\xbd", "\xef\xbb\xbfHTTP", "\xe9\xe9"]) {
    assertEquals(headText(bytesOf(text)), text);
  }
});

Deno.test("a head of spaces takes no longer than one of letters", () => {
  const spaces = `a: ${" ".repeat(LINE_BYTES - 100)}x${" ".repeat(50)}`;
  const started = performance.now();
  const { values } = parseHead(`HTTP/1.1 200 OK\r\n${`${spaces}\r\n`.repeat(3)}\r\n`);
  assertEquals(values[0], "x");
  assert(performance.now() - started < 100);
});
