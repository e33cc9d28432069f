import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { HeadCache, type PackedRequest, packRequest } from "../../lib/http1/pack_request.ts";

const DIRECTION = { host: "one.example", target: "/v1" };
const LINES = "POST /v1 HTTP/1.1\r\nhost: one.example\r\n";
const OWN = "accept-encoding: identity\r\nuser-agent: sluice\r\n";
const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const wireOf = ({ first, second }: PackedRequest) => textOf(first) + (second === undefined ? "" : textOf(second));

Deno.test("a head is reused only if all of it is equal", () => {
  const heads = new HeadCache(DIRECTION);
  const changes: [headers: Record<string, string>, closes: boolean][] = [
    [{ a: "1", b: "2" }, false],
    [{ a: "1", b: "3" }, false],
    [{ a: "1" }, false],
    [{}, false],
    [{ a: "1", b: "2", c: "" }, false],
    [{ a: "1", b: "2", d: "" }, false],
    [{ a: "1", b: "2", d: "" }, true],
    [{ A: "1", b: "2" }, true],
    [{ constructor: "x" }, true],
  ];
  for (const [headers, closes] of changes) {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const wanted = LINES + lines + OWN + (closes ? "connection: close\r\n" : "");
    const begin = heads.begin({ headers, closes });
    assertEquals(textOf(begin), wanted);
    assertStrictEquals(heads.begin({ headers: { ...headers }, closes }), begin);
  }
});

Deno.test("headers that the caller changes after a request are detected", () => {
  const heads = new HeadCache(DIRECTION);
  const headers: Record<string, string> = { authorization: "Bearer one" };
  heads.begin({ headers, closes: false });
  headers.authorization = "Bearer two";
  assertEquals(textOf(heads.begin({ headers, closes: false })), `${LINES}authorization: Bearer two\r\n${OWN}`);
  headers.authorization = "Bearer two\r\nx: y";
  assertThrows(() => heads.begin({ headers, closes: false }), TypeError);
  assertThrows(() => heads.begin({ headers, closes: false }), TypeError);
});

Deno.test("bodies of any length are sent in one or several pieces with the right length", () => {
  const begin = new HeadCache(DIRECTION).begin({ headers: {}, closes: false });
  const lengths = [0, 1, 4_000, 100_000];
  for (const letter of ["x", "é", "漢"]) {
    for (const length of lengths) {
      const body = letter.repeat(length);
      const bytes = new TextEncoder().encode(body);
      const half = letter.repeat(length >> 1);
      const halfBytes = new TextEncoder().encode(half).length;
      for (
        const given of [body, [bytes], [half, bytes.subarray(halfBytes)], [
          bytes.subarray(0, halfBytes),
          "",
          body.slice(half.length),
        ]]
      ) {
        const packed = packRequest(begin, { body: given });
        const content = wireOf(packed) === `${textOf(begin)}content-length: ${bytes.length}\r\n\r\n${body}`;
        assertEquals(content, true, letter + length);
      }
    }
  }
});
