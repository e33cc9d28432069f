import { assertEquals } from "@std/assert";
import { encodeSteps } from "../lib/utf8_steps.ts";
import { atOnce } from "../lib/pace.ts";
import { seeded } from "./random.ts";

Deno.test("encodeSteps() makes the bytes that the encoder makes, wherever the pieces end", () => {
  const { below } = seeded(9);
  const characters = ["a", "é", "字", "😀", "\ud83d", "\ude00"];
  for (let round = 0; round < 5_000; round++) {
    const text = Array.from({ length: below(30) }, () => characters[below(characters.length)]).join("");
    for (const size of [2, 3, 7]) assertEquals(atOnce(encodeSteps(text, size)), new TextEncoder().encode(text));
  }
});
