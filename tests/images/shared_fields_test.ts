import { assertEquals } from "@std/assert";
import { readGeneration } from "../../lib/images/read_generation.ts";

Deno.test("alternative spellings of known members are not passed on", () => {
  const body = {
    model: "a/b",
    prompt: "a",
    quality: "low",
    N: 10,
    SIZE: "4096x4096",
    "u\u017fer": "x",
    moderation: "low",
  };
  assertEquals(readGeneration(body, { quality: undefined }).rest, { moderation: "low" });
});
