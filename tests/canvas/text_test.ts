import { assert, assertEquals, assertLess } from "@std/assert";
import { drawable } from "../../lib/canvas/font.ts";
import { layOut } from "../../lib/canvas/text.ts";

Deno.test("layOut() wraps text in the largest size that fits", () => {
  const room = { width: 400, lines: 3, largest: 40, smallest: 10 };
  const short = layOut("Hello world", room);
  assertEquals(short?.lines, ["Hello world"]);
  const long = layOut("word ".repeat(24), room);
  assertEquals(long?.lines.join(" "), "word ".repeat(24).trim());
  assertLess(long?.size ?? 99, short?.size ?? 0);
  const cut = layOut("word ".repeat(400), room);
  assertEquals(cut?.lines.length, 3);
  assert(cut?.lines[2]?.endsWith("..."));
  const start = performance.now();
  const unbroken = layOut("w".repeat(200_000), room);
  // Only what may fit is laid out: all of the text would take half a minute.
  assertLess(performance.now() - start, 5_000);
  for (const block of [short, long, cut, unbroken]) assertLess(block?.width ?? 999, room.width + 1);
  assertEquals(layOut("我喜欢猫", room), undefined);
});

Deno.test("drawable() keeps ASCII and Latin-1 and drops other characters", () => {
  const range = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, i) => String.fromCharCode(from + i)).join("");
  assertEquals(drawable(range(0x21, 0x7e)), range(0x21, 0x7e));
  const letters = [...range(0xc0, 0xff)].filter((letter) => !"Ææ".includes(letter)).join("");
  assertEquals(drawable(letters), letters);
  assertEquals(drawable("Ærø “œuvre” …"), 'AErø "oeuvre" ...');
  assertEquals(drawable("  one\n\ttwo 猫 three "), "one two three");
  assertEquals(drawable("Łódź, Šiauliai, İ"), "Łódź, Šiauliai, İ");
});
