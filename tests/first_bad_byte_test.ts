import { assertEquals } from "@std/assert";
import { firstBadByte } from "../lib/text.ts";

Deno.test("firstBadByte() agrees with the decoder on every sequence of up to three bytes", () => {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const isText = (bytes: Uint8Array) => {
    try {
      return decoder.decode(bytes) !== undefined;
    } catch {
      return false;
    }
  };
  const edges = [
    0x00,
    0x7f,
    0x80,
    0x8f,
    0x90,
    0x9f,
    0xa0,
    0xbf,
    0xc0,
    0xc1,
    0xc2,
    0xdf,
    0xe0,
    0xed,
    0xef,
    0xf0,
    0xf4,
    0xf5,
    0xff,
  ];
  for (const a of edges) {
    for (const b of edges) {
      for (const c of edges) {
        for (const bytes of [[a], [a, b], [a, b, c], [a, b, c, 0x80], [0x41, a, b, c, 0xbf]]) {
          const text = Uint8Array.from(bytes);
          assertEquals(firstBadByte(text) === text.length, isText(text), bytes.join());
        }
      }
    }
  }
});

Deno.test("firstBadByte() names the first byte of a sequence that breaks off", () => {
  const text = [...new TextEncoder().encode("a\u00e9\u20ac\u{1f600}")];
  assertEquals(firstBadByte(Uint8Array.from(text)), text.length);
  for (const [length, at] of [[2, 1], [4, 3], [5, 3], [7, 6], [9, 6]] as const) {
    assertEquals(firstBadByte(Uint8Array.from(text.slice(0, length))), at);
  }
});
