import { assert, assertEquals, assertThrows } from "@std/assert";
import { Buffer } from "node:buffer";
import { type BodyReader, createBody, type ReceiveBuffer } from "../../lib/http1/body_reader.ts";
import { ConnectionEnded, MalformedResponse } from "../../lib/http1/errors.ts";
import type { BodyFraming } from "../../lib/http1/response_head.ts";
import { seeded } from "../support/random.ts";

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, "latin1"));
const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");
const CHUNKED: BodyFraming = "chunked";

/** Reads a body in pieces; each reuses the buffer of the one before, as in a connection. */
function readPieces(body: BodyReader, pieces: readonly Uint8Array[]): { text: string; left: string } {
  const longest = Math.max(...pieces.map(({ length }) => length));
  const inbox: ReceiveBuffer = { buffer: new Uint8Array(longest + 10), start: 0, end: 0 };
  let text = "";
  let left = "";
  for (const piece of pieces) {
    inbox.start = 7;
    inbox.end = 7 + piece.length;
    inbox.buffer.fill(63);
    inbox.buffer.set(piece, 7);
    for (let data = body.take(inbox); data !== undefined; data = body.take(inbox)) text += textOf(data);
    left += textOf(inbox.buffer.subarray(inbox.start, inbox.end));
  }
  return { text, left };
}

/** A text in two pieces, at every place unless it is long; then byte by byte. */
function* splits(text: string): Generator<Uint8Array<ArrayBuffer>[]> {
  const bytes = bytesOf(text);
  for (let at = 0; at <= text.length; at += text.length < 1_000 ? 1 : Math.ceil(text.length / 100)) {
    yield [bytes.subarray(0, at), bytes.subarray(at)];
  }
  if (text !== "") yield Array.from(bytes, (byte) => Uint8Array.of(byte));
}

Deno.test("bodies are read completely, split anywhere, and no byte further", () => {
  const recorded: [name: string, BodyFraming, wire: string, text: string][] = [
    ["a length", 5, "hello", "hello"],
    ["nothing", 0, "", ""],
    ["one chunk", CHUNKED, "5\r\nhello\r\n0\r\n\r\n", "hello"],
    ["no chunk", CHUNKED, "0\r\n\r\n", ""],
    ["many chunks", CHUNKED, "1\r\nh\r\n3\r\nell\r\n1\r\no\r\n0\r\n\r\n", "hello"],
    [
      "upper and lower case",
      CHUNKED,
      `a\r\n${"x".repeat(10)}\r\nA\r\n${"y".repeat(10)}\r\n0\r\n\r\n`,
      "x".repeat(10) + "y".repeat(10),
    ],
    ["leading zeros", CHUNKED, "0000000000005\r\nhello\r\n000\r\n\r\n", "hello"],
    ["extensions", CHUNKED, '5;a=b;c="d\te~"\r\nhello\r\n0;last\r\n\r\n', "hello"],
    ["trailers", CHUNKED, "5\r\nhello\r\n0\r\nx-sum: 1\r\nX-More:\t2\r\n\r\n", "hello"],
    ["CR and LF within", CHUNKED, "9\r\na\r\n0\r\n\r\nb\r\n0\r\n\r\n", "a\r\n0\r\n\r\nb"],
  ];
  for (const [name, framing, wire, text] of recorded) {
    for (const pieces of splits(wire)) {
      const body = createBody(framing);
      assertEquals(readPieces(body, pieces), { text, left: "" }, name);
      assertEquals(body.done, true);
      body.end();
    }
    for (const pieces of splits(wire)) {
      const last = pieces.length - 1;
      const more = pieces.map((piece, at) => at === last ? bytesOf(`${textOf(piece)}HTTP/1.1`) : piece);
      assertEquals(readPieces(createBody(framing), more), { text, left: "HTTP/1.1" }, name);
    }
    // No cut position counts as an end.
    for (let cut = 0; cut < wire.length; cut++) {
      const body = createBody(framing);
      readPieces(body, [bytesOf(wire.slice(0, cut))]);
      assertEquals(body.done, false, `${name} cut at ${cut}`);
      assertThrows(() => body.end(), ConnectionEnded);
    }
  }
});

Deno.test("a body without a length ends with its connection", () => {
  const body = createBody("close");
  assertEquals(readPieces(body, [bytesOf("hel"), bytesOf("lo")]), { text: "hello", left: "" });
  assertEquals(body.done, false);
  body.end();
  assertEquals(body.done, true);
});

Deno.test("chunks of random sizes in pieces of random sizes are reassembled", () => {
  const { below } = seeded(11);
  for (let round = 0; round < 300; round++) {
    let wire = "";
    let text = "";
    for (let count = below(20); count > 0; count--) {
      const size = 1 + below(below(2) === 0 ? 8 : 400);
      const data = Array.from({ length: size }, () => String.fromCharCode(below(256))).join("");
      wire += `${size.toString(16)}${below(5) === 0 ? ";x" : ""}\r\n${data}\r\n`;
      text += data;
    }
    wire += "0\r\n\r\n";
    const pieces: Uint8Array[] = [];
    for (let at = 0; at < wire.length;) {
      const size = 1 + below(below(2) === 0 ? 5 : 300);
      pieces.push(bytesOf(wire.slice(at, at + size)));
      at += size;
    }
    const read = readPieces(createBody(CHUNKED), pieces);
    assert(read.text === text && read.left === "", `round ${round}`);
  }
});

Deno.test("ambiguous chunks are rejected, split anywhere", () => {
  const broken: [name: string, wire: string][] = [
    ["no size", "\r\nhello\r\n"],
    ["no digit", "x\r\nhello\r\n"],
    ["an extension alone", ";a\r\nhello\r\n"],
    ["a minus", "-5\r\nhello\r\n"],
    ["a plus", "+5\r\nhello\r\n"],
    ["hexadecimal, said so", "0x5\r\nhello\r\n"],
    ["a space before", " 5\r\nhello\r\n"],
    ["a space after", "5 \r\nhello\r\n"],
    ["an underscore", "1_0\r\nhello\r\n"],
    ["too many digits", "00000000000005\r\nhello\r\n"],
    ["a size larger than all", "ffffffffffffffff\r\nhello\r\n"],
    ["LF alone after the size", "5\nhello\r\n"],
    ["CR alone after the size", "5\rhello\r\n"],
    ["LF in an extension", "5;a\nb\r\nhello\r\n"],
    ["NUL in an extension", "5;a\0\r\nhello\r\n"],
    ["a control character in an extension", "5;a\x1f\r\nhello\r\n"],
    ["DEL in an extension", "5;a\x7f\r\nhello\r\n"],
    ["more data than said", "4\r\nhello\r\n"],
    ["less data than said", "6\r\nhello\r\n0\r\n\r\n"],
    ["LF alone after the data", "5\r\nhello\n0\r\n\r\n"],
    ["CR alone after the data", "5\r\nhello\r0\r\n\r\n"],
    ["nothing after the data", "5\r\nhello0\r\n\r\n"],
    ["LF alone at the end", "0\r\n\n"],
    ["a trailer without a colon", "0\r\nx\r\n\r\n"],
    ["a trailer with a space", "0\r\nx : y\r\n\r\n"],
    ["a folded trailer", "0\r\nx: y\r\n z\r\n\r\n"],
    ["LF in a trailer", "0\r\nx: y\nz: a\r\n\r\n"],
    ["NUL in a trailer", "0\r\nx: \0\r\n\r\n"],
  ];
  for (const [name, wire] of broken) {
    for (const pieces of splits(wire)) {
      assertThrows(() => readPieces(createBody(CHUNKED), pieces), MalformedResponse, undefined, name);
    }
  }
});

Deno.test("chunk extensions and trailers are read up to their limits", () => {
  // Their CRs count, too.
  const cases: [name: string, most: number, wireOf: (size: number) => string][] = [
    ["an extension", 1_024, (size) => `0;${"a".repeat(size - 1)}\r\n\r\n`],
    ["a trailer", 16_384, (size) => `0\r\nx:${"y".repeat(size - 4)}\r\n\r\n`],
    ["two trailers", 16_384, (size) => `0\r\na:b\r\nx:${"y".repeat(size - 8)}\r\n\r\n`],
  ];
  for (const [name, most, wireOf] of cases) {
    for (const pieces of splits(wireOf(most))) {
      assertEquals(readPieces(createBody(CHUNKED), pieces), { text: "", left: "" }, name);
    }
    for (const pieces of splits(wireOf(most + 1))) {
      assertThrows(() => readPieces(createBody(CHUNKED), pieces), MalformedResponse, undefined, name);
    }
  }
});
