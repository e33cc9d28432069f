import { assertEquals } from "@std/assert";
import { encodeText } from "../../lib/server/sse.ts";

Deno.test("encodeText() returns separate bytes for each text, at any length", () => {
  const texts = Array.from(
    { length: 500 },
    (_, at) => ["a", "é", "€", "😀", "\ud800"][at % 5]?.repeat(at * 7 % 900) ?? "",
  );
  texts.push("", "€".repeat(100_000));
  const given = texts.map((text) => encodeText(text));
  // Those that were made later have not overwritten them.
  for (const [at, text] of texts.entries()) assertEquals(given[at], new TextEncoder().encode(text), `text ${at}`);
});
