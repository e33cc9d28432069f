import { assertEquals, assertStrictEquals } from "@std/assert";
import { decodeUtf8, decodeUtf8Steps, Utf8Error } from "../lib/text.ts";
import { runToEnd } from "../lib/scheduler.ts";
import { seeded } from "./random.ts";

/** The text, or what is said of the bytes. */
function told(read: () => string): string {
  try {
    return read();
  } catch (error) {
    return error instanceof Utf8Error ? `refused: ${error.message}` : String(error);
  }
}

Deno.test("decodeUtf8Steps() reads and refuses what decodeUtf8() does, wherever the pieces end", () => {
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
  for (let round = 0; round < 20_000; round++) {
    const bytes: number[] = [];
    for (let left = below(20); left > 0; left--) {
      bytes.push(...(below(60) === 0 ? wrong[below(wrong.length)] : parts[below(parts.length)]) ?? []);
    }
    const body = new Uint8Array(bytes);
    const expected = told(() => decodeUtf8(body));
    if (expected.startsWith("refused")) refused++;
    else assertStrictEquals(expected, new TextDecoder("utf-8", { fatal: true }).decode(body));
    for (const size of [4, 5, 7, 16]) assertStrictEquals(told(() => runToEnd(decodeUtf8Steps(body, size))), expected);
  }
  assertEquals(refused > 1_000 && refused < 10_000, true, String(refused));
});
