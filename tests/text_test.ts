import { assertEquals, assertStrictEquals } from "@std/assert";
import {
  decodeUtf8,
  decodeUtf8Steps,
  encodeUtf8,
  firstBadByte,
  plainText,
  utf8Decoder,
  Utf8Error,
} from "../lib/text.ts";
import { runToEnd } from "../lib/scheduler.ts";
import { seeded } from "./support/random.ts";
import { rounds } from "./support/skip.ts";

/** The text, or the error about the bytes. */
function outcomeOf(read: () => string): string {
  try {
    return read();
  } catch (error) {
    return error instanceof Utf8Error ? `refused: ${error.message}` : String(error);
  }
}

Deno.test("decodeUtf8Steps() agrees with decodeUtf8(), split anywhere", () => {
  const { below } = seeded(3);
  const parts = ["a", "é", "字", "😀", "\ufeff", "\ufffd"].map((text) => new TextEncoder().encode(text));
  const wrong = [[0xff], [0xc3], [0xe5, 0xad], [0xf0, 0x9f, 0x98], [0x80], [0xed, 0xa0, 0x80], [
    0x80,
    0x80,
    0x80,
    0x80,
    0x80,
  ]];
  let refused = 0;
  for (let round = 0; round < rounds(20_000); round++) {
    const bytes: number[] = [];
    for (let left = below(20); left > 0; left--) {
      bytes.push(...(below(60) === 0 ? wrong[below(wrong.length)] : parts[below(parts.length)]) ?? []);
    }
    const body = new Uint8Array(bytes);
    const expected = outcomeOf(() => decodeUtf8(body));
    if (expected.startsWith("refused")) refused++;
    else assertStrictEquals(expected, new TextDecoder("utf-8", { fatal: true }).decode(body));
    for (const size of [4, 5, 7, 16]) {
      assertStrictEquals(outcomeOf(() => runToEnd(decodeUtf8Steps(body, size))), expected);
    }
  }
  assertEquals(refused > rounds(1_000) && refused < rounds(10_000), true, String(refused));
});

Deno.test("firstBadByte() agrees with the decoder on every sequence of up to three bytes", () => {
  const decoder = new TextDecoder();
  const isText = (bytes: Uint8Array) => !decoder.decode(bytes).includes("\ufffd");
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
          if ((firstBadByte(text) === text.length) !== isText(text)) throw new Error(`Not alike: ${bytes}`);
        }
      }
    }
  }
});

Deno.test("firstBadByte() returns the first byte of an incomplete sequence", () => {
  const text = [...new TextEncoder().encode("a\u00e9\u20ac\u{1f600}")];
  assertEquals(firstBadByte(Uint8Array.from(text)), text.length);
  for (const [length, at] of [[2, 1], [4, 3], [5, 3], [7, 6], [9, 6]] as const) {
    assertEquals(firstBadByte(Uint8Array.from(text.slice(0, length))), at);
  }
});

Deno.test("encodeUtf8() equals TextEncoder, split anywhere", () => {
  const { below } = seeded(9);
  const characters = ["a", "é", "字", "😀", "\ud83d", "\ude00"];
  for (let round = 0; round < 5_000; round++) {
    const text = Array.from({ length: below(30) }, () => characters[below(characters.length)]).join("");
    for (const size of [2, 3, 7]) assertEquals(runToEnd(encodeUtf8(text, size)), new TextEncoder().encode(text));
  }
});

Deno.test("utf8Decoder() equals TextDecoder, split anywhere", () => {
  for (const text of ["", "\ufeff", "a\ufeffé\ufeff\ufeff😀", "\ufeffa\ufeff", "\ufeff\ufeffa"]) {
    const bytes = new TextEncoder().encode(text);
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        const decode = utf8Decoder();
        const pieces = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second), undefined];
        assertEquals(pieces.map(decode).join(""), new TextDecoder().decode(bytes), `${text} ${first} ${second}`);
      }
    }
  }
});

Deno.test("plainText() leaves nothing that breaks a line or reverses the text after it", () => {
  assertEquals(plainText("\u202eana\u2066b\u200f\u061cc\u2028d\u001b[31m\u0085", 99), "ana b  c d [31m");
  assertEquals(plainText("שלום, 字 é", 99), "שלום, 字 é");
});
