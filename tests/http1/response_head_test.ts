import { assert, assertEquals, assertThrows } from "@std/assert";
import { MalformedResponse } from "../../lib/http1/errors.ts";
import { findHeadEnd, HEAD_LINES, LINE_BYTES, parseHead, RESPONSE_HEADERS } from "../../lib/http1/response_head.ts";
import { workedMs } from "../support/turns.ts";

const bytesOf = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));

/** The value that a head with one line has for a header. */
function valueOf(value: string, { name = "upgrade", read }: { name?: string; read?: string } = {}): string | undefined {
  const { headers }: { headers: Readonly<Record<string, string>> } = parseHead(
    bytesOf(`HTTP/1.1 200 OK\r\n${name}: ${value}\r\n\r\n`),
  );
  return headers[read ?? name.toLowerCase()];
}

/** Reads a head that arrives in two pieces, after the rest of another answer. */
function readSplit(text: string, split: number): { end: number; looks: number } {
  const before = "xx\r\n\r\n";
  const bytes = bytesOf(before + text);
  const start = before.length;
  const first = findHeadEnd(bytes, { start, seen: start, end: start + split });
  if (first >= 0) return { end: first - start, looks: 1 };
  return { end: findHeadEnd(bytes, { start, seen: start + split, end: bytes.length }) - start, looks: 2 };
}

Deno.test("a response head is read completely, split anywhere", () => {
  const head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Other: y\r\nUpgrade:\r\nkeep-alive: a\r\nKeep-Alive: \t b\t \r\n\r\n";
  for (let split = 0; split <= head.length; split++) {
    const { end, looks } = readSplit(`${head}data: {}\r\n\r\n`, split);
    assertEquals([end, looks], [head.length, split < head.length ? 2 : 1]);
  }
  const headers = { "content-type": "text/event-stream", upgrade: "", "keep-alive": "a, b" };
  assertEquals(parseHead(bytesOf(head)), { minor: 1, status: 200, headers });
  const behind = "HTTP/1.0 500 \r\nx: ";
  const span = { start: behind.length, end: behind.length + head.length };
  assertEquals(parseHead(bytesOf(`${behind}${head}a: b\r\n\r\n`), span), { minor: 1, status: 200, headers });
});

Deno.test("valid heads are accepted, and ambiguous ones rejected", () => {
  const line = (text: string) => `HTTP/1.1 200 OK\r\n${text}\r\n\r\n`;
  const cases: [name: string, head: string, fine: boolean][] = [
    ["no reason", "HTTP/1.1 200\r\n\r\n", true],
    ["an empty reason", "HTTP/1.1 200 \r\n\r\n", true],
    ["a reason of any letters", "HTTP/1.0 404 Nicht gefunden: \xfc\r\n\r\n", true],
    ["the lowest status", "HTTP/1.1 100 Continue\r\n\r\n", true],
    ["the highest status", "HTTP/1.1 599 OK\r\n\r\n", true],
    ["a value of any letters", line("a: \xe9\xff"), true],
    ["a colon in the value", line("a: b:c"), true],
    ["a name of signs", line("!#$%&'*+-.^_`|~09: x"), true],
    ["a tab in the value", line("a: b\tc"), true],
    ["the longest line", line(`a: ${"x".repeat(LINE_BYTES - 5)}`), true],
    ["as many lines as may be", line(Array(HEAD_LINES).fill("a: b").join("\r\n")), true],
    ["HTTP/2", "HTTP/2 200\r\n\r\n", false],
    ["HTTP/1.2", "HTTP/1.2 200 OK\r\n\r\n", false],
    ["HTTP/0.9", "<html>\r\n\r\n", false],
    ["another first letter", "XTTP/1.1 200 OK\r\n\r\n", false],
    ["lower case", "http/1.1 200 OK\r\n\r\n", false],
    ["two spaces", "HTTP/1.1  200 OK\r\n\r\n", false],
    ["a leading space", " HTTP/1.1 200 OK\r\n\r\n", false],
    ["a letter for a digit", "HTTP/1.1 2x0 OK\r\n\r\n", false],
    ["a sign for a digit", "HTTP/1.1 20/ OK\r\n\r\n", false],
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
    const read = () => parseHead(bytesOf(head));
    if (fine) assert(read().status > 0, name);
    else assertThrows(read, MalformedResponse, undefined, name);
  }
});

Deno.test("lines that end in a bare LF are rejected at once", () => {
  const cases = ["\n", "\r\n", "HTTP/1.1 200 OK\n", "HTTP/1.1 200 OK\r\na: b\n", "HTTP/1.1 200 OK\r\n\n"];
  for (const text of cases) {
    const bytes = bytesOf(text);
    assertThrows(
      () => findHeadEnd(bytes, { start: 0, seen: 0, end: bytes.length }),
      MalformedResponse,
      undefined,
      text,
    );
  }
});

Deno.test("each byte of a head is one character", () => {
  for (let byte = 0; byte < 256; byte++) {
    const text = `A${String.fromCharCode(byte)}B`;
    const read = () => valueOf(text);
    if ((byte < 0x20 && byte !== 9) || byte === 0x7f) assertThrows(read, MalformedResponse);
    else assertEquals(read(), text);
  }
  // Bytes that would be one UTF-8 character, and bytes that are invalid UTF-8.
  for (const text of ["\xc3\xa4", "\xef\xbf\xbd", "\xef\xbb\xbfHTTP", "\xe9\xe9"]) assertEquals(valueOf(text), text);
});

Deno.test("each known header is found in any case", () => {
  for (const name of RESPONSE_HEADERS) {
    for (const spelled of [name, name.toUpperCase()]) assertEquals(valueOf("x", { name: spelled }), "x", spelled);
    for (const other of [`x${name}`, `${name}x`, name.slice(1), name.replace(/.$/, "_")]) {
      assertEquals(valueOf("x", { name: other, read: name }), undefined, other);
    }
  }
});

Deno.test("a head of spaces takes no longer than one of letters", () => {
  const spaces = `upgrade: ${" ".repeat(LINE_BYTES - 100)}x${" ".repeat(50)}`;
  const head = bytesOf(`HTTP/1.1 200 OK\r\n${`${spaces}\r\n`.repeat(3)}\r\n`);
  const started = workedMs();
  for (let round = 0; round < 5; round++) {
    const { headers } = parseHead(head);
    assertEquals(headers.upgrade, "x, x, x");
  }
  assert(workedMs() - started < 2_000);
});
