import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import { readInstruction } from "../../lib/canvas/instruction.ts";
import { blank, type Pixels } from "../../lib/canvas/pixels.ts";
import { cover, resize } from "../../lib/canvas/resize.ts";
import { at, distance, edited, quarters, SQUARE } from "./images.ts";

Deno.test("startEdit() applies the edits named in the instruction", () => {
  const [a, b, c, d] = [[220, 60, 50], [60, 190, 80], [60, 80, 210], [230, 220, 90]];
  const corners = (
    pixels: Pixels,
  ) => [at(pixels, 20, 20), at(pixels, 100, 20), at(pixels, 20, 100), at(pixels, 100, 100)];
  assertEquals(corners(edited("resize it")), [a, b, c, d] as number[][]);
  assertEquals(corners(edited("flip it")), [b, a, d, c] as number[][]);
  assertEquals(corners(edited("mirror vertically")), [c, d, a, b] as number[][]);
  assertEquals(corners(edited("rotate")), [c, a, d, b] as number[][]);
  assertEquals(corners(edited("rotate to the left")), [b, d, a, c] as number[][]);
  assertEquals(corners(edited("turn it upside down")), [d, c, b, a] as number[][]);
  assertEquals(corners(edited("invert the colours"))[0], [35, 195, 205]);
  for (const [red, green, blue] of corners(edited("make it black and white"))) assertEquals([green, blue], [red, red]);
  const sepia = at(edited("sepia"), 20, 20);
  assert((sepia[0] ?? 0) > (sepia[1] ?? 0) && (sepia[1] ?? 0) > (sepia[2] ?? 0));
  assertGreater(at(edited("tint it blue"), 20, 20)[2] ?? 0, at(edited("tint it blue"), 20, 20)[0] ?? 0);
  assertGreater(at(edited("brighten"), 20, 20)[1] ?? 0, 60);
  assertLess(at(edited("darken"), 20, 20)[0] ?? 0, 220);
  const edge = at(edited("blur it"), 60, 20);
  assert((edge[0] ?? 0) > 80 && (edge[0] ?? 0) < 200, `${edge}`);
  const frame = at(edited("a blue border"), 1, 60);
  assertGreater(frame[2] ?? 0, (frame[0] ?? 0) + 80);
  assertEquals(at(edited("a blue border"), 60, 50).slice(0, 1), at(edited("resize"), 60, 50).slice(0, 1));
});

Deno.test("startEdit() draws quoted text and does not read it as an instruction", () => {
  const { edits } = readInstruction('Write "Blue blur" on it');
  assertEquals(edits, [{ type: "text", text: "Blue blur" }]);
  assertGreater(distance(edited('Write "Hello"'), edited('Write "Other"')), 0.1);
  assertEquals(readInstruction("Schreib „Grüße“ darauf").edits, [{ type: "text", text: "Grüße" }]);
});

Deno.test("startEdit() changes the image visibly for an unknown instruction", () => {
  assertGreater(distance(edited("add a hat"), edited("resize")), 5);
  assertGreater(distance(edited(""), edited("resize")), 2);
});

Deno.test("startEdit() colours the border and the image separately", () => {
  const { edits } = readInstruction("Make it green with a gold frame");
  assertEquals(edits.map((edit) => [edit.type, "tint" in edit ? edit.tint?.hue : undefined]), [["tint", 145], [
    "border",
    88,
  ]]);
});

Deno.test("startEdit() edits only where the mask is transparent", () => {
  const mask = blank(SQUARE, 255);
  for (let y = 0; y < 120; y++) for (let x = 0; x < 60; x++) mask.data[(y * 120 + x) * 4 + 3] = 0;
  const masked = edited("invert", { mask });
  assertEquals([at(masked, 20, 20), at(masked, 100, 20)], [[35, 195, 205], [60, 190, 80]]);
  const half = blank({ width: 60, height: 60 }, 128);
  const [red = 0] = at(edited("invert", { mask: half }), 20, 20);
  assert(Math.abs(red - 127) < 4, `${red}`);
});

Deno.test("startEdit() fills the size in the image's proportions, and arranges several images", () => {
  const wide = quarters({ width: 240, height: 60 });
  const fitted = cover(wide, SQUARE);
  assertEquals([fitted.width, fitted.height], [120, 120]);
  assertEquals([at(fitted, 30, 30), at(fitted, 90, 90)], [[220, 60, 50], [230, 220, 90]]);
  const red = blank(SQUARE, 255), gray = blank(SQUARE, 90);
  for (let i = 3; i < gray.data.length; i += 4) gray.data[i] = 255;
  for (let i = 0; i < red.data.length; i += 4) red.data.set([200, 0, 0], i);
  const pair = edited("resize", { images: [red, gray] });
  assertEquals([at(pair, 30, 60), at(pair, 90, 60), at(pair, 60, 60)], [[200, 0, 0], [90, 90, 90], [255, 255, 255]]);
  const many = edited("resize", { images: Array.from({ length: 16 }, () => red) });
  assertEquals([at(many, 45, 14), at(many, 60, 14)], [[200, 0, 0], [255, 255, 255]]);
});

Deno.test("resize() keeps uniform areas uniform, in both directions and at the edges", () => {
  const even = blank({ width: 50, height: 31 }, 77);
  for (const size of [{ width: 7, height: 5 }, { width: 333, height: 200 }, { width: 1, height: 1 }]) {
    const resized = resize(even, size);
    assertEquals(resized.data.every((value) => value === 77), true);
    assertEquals(resized.data.length, size.width * size.height * 4);
  }
});
