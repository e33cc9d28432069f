import { assertEquals } from "@std/assert";
import { encodeUtf8, utf8Decoder } from "../lib/text.ts";
import { runToEnd } from "../lib/scheduler.ts";
import { seeded } from "./random.ts";

Deno.test("encodeUtf8() makes the bytes that the encoder makes, wherever the pieces end", () => {
  const { below } = seeded(9);
  const characters = ["a", "é", "字", "😀", "\ud83d", "\ude00"];
  for (let round = 0; round < 5_000; round++) {
    const text = Array.from({ length: below(30) }, () => characters[below(characters.length)]).join("");
    for (const size of [2, 3, 7]) assertEquals(runToEnd(encodeUtf8(text, size)), new TextEncoder().encode(text));
  }
});

Deno.test("utf8Decoder() reads what the decoder reads of the whole, wherever the pieces end", () => {
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
