import { assertEquals, assertStrictEquals } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { decode, decodeSteps } from "../../lib/server/decode.ts";
import { atOnce } from "../../lib/scheduler.ts";
import { seeded } from "../random.ts";

/** The text, or what is said of the bytes. */
function told(read: () => string): string {
  try {
    return read();
  } catch (error) {
    return error instanceof GatewayError ? `refused: ${error.message}` : String(error);
  }
}

Deno.test("decodeSteps() reads and refuses what decode() does, wherever the pieces end", () => {
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
    const expected = told(() => decode(body));
    if (expected.startsWith("refused")) refused++;
    else assertStrictEquals(expected, new TextDecoder("utf-8", { fatal: true }).decode(body));
    for (const size of [4, 5, 7, 16]) assertStrictEquals(told(() => atOnce(decodeSteps(body, size))), expected);
  }
  assertEquals(refused > 1_000 && refused < 10_000, true, String(refused));
});
