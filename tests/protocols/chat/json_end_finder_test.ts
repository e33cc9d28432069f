import { assertEquals } from "@std/assert";
import { jsonEndFinder } from "../../../lib/protocols/chat/call_finder.ts";
import { seeded } from "../../support/random.ts";

/** Index after the outermost value, found one character at a time; -1 if it is incomplete. */
function endOf(text: string): number {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? "";
    if (inString) {
      if (character === "\\") at++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if ("{[".includes(character)) depth++;
    else if ("}]".includes(character) && --depth <= 0) return at + 1;
  }
  return -1;
}

Deno.test("jsonEndFinder() finds the same end, split anywhere", () => {
  const random = seeded(22);
  for (let round = 0; round < 2_000; round++) {
    const text = "{" +
      Array.from({ length: random.below(60) }, () => random.pick(['"', "\\", "{", "}", "[", "]", "a", "é"])).join("");
    const end = endOf(text);
    for (const most of [1, 3, 100]) {
      const finder = jsonEndFinder();
      let found = -1;
      for (let at = 0; at < text.length && found < 0;) {
        const length = 1 + random.below(most);
        const piece = text.slice(at, at + length);
        finder.push(piece);
        finder.push("");
        at += piece.length;
        if (finder.complete) found = at;
      }
      if (most === 1) assertEquals(found, end, text);
      assertEquals(found >= 0, end >= 0, text);
    }
  }
});
