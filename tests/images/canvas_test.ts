import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertNotEquals,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { Buffer } from "node:buffer";
import { UnsupportedParameters } from "../../lib/protocols/canonical/unsupported_parameters.ts";
import { modelSchema } from "../../lib/catalog/model.ts";
import { GatewayError } from "../../lib/errors.ts";
import { type Editing, startEdit } from "../../lib/canvas/edit.ts";
import { drawable } from "../../lib/canvas/font.ts";
import { readInstruction } from "../../lib/canvas/instruction.ts";
import { paint } from "../../lib/canvas/paint.ts";
import { cover, resize } from "../../lib/canvas/resize.ts";
import { layOut } from "../../lib/canvas/text.ts";
import { encodePng } from "../../lib/images/codec_png.ts";
import { decodeImage } from "../../lib/images/codec.ts";
import { blank, type Pixels } from "../../lib/canvas/pixels.ts";
import type { ImageEvent, ImageRequest, InputImage, Size } from "../../lib/images/types.ts";
import { imageSize } from "../../lib/billing/image_size.ts";
import { createCanvas } from "../../lib/upstreams/embedded/canvas.ts";
import { imageRequest } from "./request.ts";
import { skipInQuick } from "../skip.ts";

const MODEL = modelSchema.parse({
  id: "sluice/canvas",
  created: 0,
  context_length: 1000,
  pricing: { prompt: "0", completion: "0" },
  targets: [{ upstream: "embedded", model: "canvas" }],
});
const SMALL = { width: 96, height: 64 };

const USUAL = { model: MODEL.id, prompt: "A red sailboat at sunset", requestedSize: "auto" } as const;

/** The feed of one request, and what ends it. */
async function open(parts: Partial<ImageRequest>) {
  const [target] = MODEL.targets;
  if (target === undefined) throw new Error("The model has no target");
  const canvas = createCanvas();
  const stop = new AbortController();
  const dropped = new UnsupportedParameters();
  const request = imageRequest({ ...USUAL, ...parts });
  const feed = await canvas.create({ request, model: MODEL, target, signal: stop.signal, dropped });
  return { canvas, feed, stop, dropped };
}

async function events(parts: Partial<ImageRequest>): Promise<ImageEvent[]> {
  const { canvas, feed } = await open(parts);
  const all: ImageEvent[] = [];
  try {
    for (let event = await feed.read(); event !== undefined; event = await feed.read()) all.push(event);
  } finally {
    feed.cancel();
    canvas.close();
  }
  return all;
}

function bytesOf(event: ImageEvent | undefined): Uint8Array<ArrayBuffer> {
  if (event === undefined || event.type === "failed") throw new Error("There is no image");
  return Uint8Array.from(Buffer.from(event.base64, "base64"));
}

Deno.test("the canvas paints each format in exactly the size, up to the largest", async () => {
  const sizes: Size[] = [{ width: 816, height: 2448 }];
  if (!skipInQuick("The largest images")) sizes.push({ width: 1024, height: 1024 }, { width: 3840, height: 2160 });
  for (const format of ["png", "jpeg", "webp"] as const) {
    for (const size of sizes) {
      const [event, ...others] = await events({ size, format });
      assertEquals(others, []);
      assertEquals(imageSize(bytesOf(event)), { type: format, ...size });
    }
  }
});

Deno.test("the canvas gives the same bytes for the same request, and other images for other words and numbers", async () => {
  const [first, second] = await events({ n: 2 });
  assertEquals([first?.index, second?.index], [0, 1]);
  assertEquals(await events({ n: 2 }), [first, second] as ImageEvent[]);
  assertNotEquals(bytesOf(first), bytesOf(second));
  assertNotEquals(bytesOf(first), bytesOf((await events({ prompt: "A red sailboat at sunset." }))[0]));
});

Deno.test("a stream has the previews it asks for, in the image's size, nearer to it from step to step", async () => {
  for (const partialImages of [0, 1, 3]) {
    const all = await events({ stream: true, partialImages, n: 2, size: { width: 1024, height: 640 } });
    const steps = Array.from({ length: partialImages }, (_, step) => step);
    assertEquals(
      all.map((event) => [event.type, event.index, "step" in event ? event.step : undefined]),
      [0, 1].flatMap((index) => [...steps.map((step) => ["partial", index, step]), ["image", index, undefined]]),
    );
    const images: Pixels[] = [];
    for (const event of all.slice(0, partialImages + 1)) images.push(await decodeImage(bytesOf(event)));
    const last = images.at(-1);
    const distances = images.map((image) => distance(image, last ?? image));
    assertEquals(distances, [...distances].sort((a, b) => b - a));
    assertEquals(images.map(({ width, height }) => [width, height]), images.map(() => [1024, 640]));
  }
  createCanvas().close();
});

/** Mean difference of two images of one size. */
function distance(one: Pixels, other: Pixels): number {
  let sum = 0;
  for (let at = 0; at < one.data.length; at++) sum += Math.abs((one.data[at] ?? 0) - (other.data[at] ?? 0));
  return sum / one.data.length;
}

Deno.test("the event loop goes round while the canvas paints", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await events({ size: { width: 2048, height: 2048 } });
  clearInterval(timer);
  assertGreater(turns, 20);
});

Deno.test("after cancel() the feed ends; after an abort it rejects with the reason", async () => {
  const cancelled = await open({ n: 3 });
  const pending = cancelled.feed.read();
  cancelled.feed.cancel();
  cancelled.feed.cancel();
  assertEquals(await pending, undefined);
  assertEquals(await cancelled.feed.read(), undefined);
  const aborted = await open({ n: 3 });
  const read = aborted.feed.read();
  aborted.stop.abort(new Error("The client has gone"));
  await assertRejects(() => read, Error, "The client has gone");
  await assertRejects(() => aborted.feed.read(), Error, "The client has gone");
  aborted.canvas.close();
});

Deno.test("members nobody reads are named", async () => {
  const { dropped, feed } = await open({ rest: { style: "vivid" } });
  feed.cancel();
  assertEquals(dropped.names, ["style"]);
});

Deno.test("every scene fills its image, with more than one colour, in any proportion", () => {
  const prompts = [
    "snowy mountains",
    "the sea at night",
    "a city in the rain",
    "a foggy forest",
    "desert",
    "flowers in a meadow, a tree and a house",
    "a planet and a rocket",
    "abstract",
    "portrait of a queen",
    "a cat, a fish, a heart and a balloon",
    "a lighthouse and birds on a beach, rainbow",
    "",
    "我喜欢猫",
    "\u0000 constructor __proto__ toString",
  ];
  const seen = new Set<string>();
  for (const prompt of prompts) {
    for (const size of [SMALL, { width: 40, height: 120 }]) {
      const { data } = paint({ prompt, size, index: 0 });
      const colors = new Set<number>();
      for (let at = 0; at < data.length; at += 4) {
        assertEquals(data[at + 3], 255);
        colors.add((data[at] ?? 0) << 16 | (data[at + 1] ?? 0) << 8 | (data[at + 2] ?? 0));
      }
      assertGreater(colors.size, 200, prompt);
      seen.add(data.join());
    }
  }
  assertEquals(seen.size, prompts.length * 2);
});

Deno.test("colour words colour the image", () => {
  const mean = (prompt: string) => {
    const { data } = paint({ prompt, size: SMALL, index: 0 });
    const sums = [0, 0, 0];
    for (let at = 0; at < data.length; at++) if (at % 4 < 3) sums[at % 4] = (sums[at % 4] ?? 0) + (data[at] ?? 0);
    return sums as [number, number, number];
  };
  const [redOfRed, , blueOfRed] = mean("a red sky over mountains");
  const [redOfBlue, , blueOfBlue] = mean("a blue sky over mountains");
  const [redOfGreen, greenOfGreen] = mean("a green sky over mountains");
  assertGreater(redOfRed, blueOfRed * 1.15);
  assertGreater(blueOfBlue, redOfBlue * 1.15);
  assertGreater(greenOfGreen, redOfGreen * 1.1);
});

Deno.test("the words of the prompt are wrapped into their room, in the largest size that fits", () => {
  const room = { width: 400, lines: 3, largest: 40, smallest: 10 };
  const short = layOut("Hello world", room);
  assertEquals(short?.lines, ["Hello world"]);
  const long = layOut("word ".repeat(24), room);
  assertEquals(long?.lines.join(" "), "word ".repeat(24).trim());
  assertLess(long?.size ?? 99, short?.size ?? 0);
  const cut = layOut("word ".repeat(400), room);
  assertEquals(cut?.lines.length, 3);
  assert(cut?.lines[2]?.endsWith("..."));
  const unbroken = layOut("w".repeat(500), room);
  for (const block of [short, long, cut, unbroken]) assertLess(block?.width ?? 999, room.width + 1);
  assertEquals(layOut("我喜欢猫", room), undefined);
});

Deno.test("the font has ASCII and Latin-1; other letters are left out", () => {
  const range = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, i) => String.fromCharCode(from + i)).join("");
  assertEquals(drawable(range(0x21, 0x7e)), range(0x21, 0x7e));
  const letters = [...range(0xc0, 0xff)].filter((letter) => !"Ææ".includes(letter)).join("");
  assertEquals(drawable(letters), letters);
  assertEquals(drawable("Ærø “œuvre” …"), 'AErø "oeuvre" ...');
  assertEquals(drawable("  one\n\ttwo 猫 three "), "one two three");
  assertEquals(drawable("Łódź, Šiauliai, İ"), "Łódź, Šiauliai, İ");
});

/** An image with a different colour in each quarter. */
function quarters({ width, height }: Size): Pixels {
  const pixels = blank({ width, height }, 255);
  const colors = [[220, 60, 50], [60, 190, 80], [60, 80, 210], [230, 220, 90]];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      pixels.data.set(colors[(y * 2 >= height ? 2 : 0) + (x * 2 >= width ? 1 : 0)] ?? [], (y * width + x) * 4);
    }
  }
  return pixels;
}

const SQUARE = { width: 120, height: 120 };

interface Parts extends Partial<Editing> {
  images?: readonly Pixels[];
  mask?: Pixels;
}

function edited(prompt: string, { images = [quarters(SQUARE)], mask, ...parts }: Parts = {}): Pixels {
  const editing = { prompt, size: SQUARE, index: 0, count: images.length, hasMask: mask !== undefined, ...parts };
  const editor = startEdit(editing);
  for (const image of images) editor.add({ ...image, data: image.data.slice() });
  return editor.finish(mask);
}

function at({ width, data }: Pixels, x: number, y: number): number[] {
  return [...data.subarray((y * width + x) * 4, (y * width + x) * 4 + 3)];
}

Deno.test("an instruction's words change the image as they say", () => {
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

Deno.test("a quoted text is drawn, and does not count as an instruction", () => {
  const { edits } = readInstruction('Write "Blue blur" on it');
  assertEquals(edits, [{ type: "text", text: "Blue blur" }]);
  assertGreater(distance(edited('Write "Hello"'), edited('Write "Other"')), 0.1);
  assertEquals(readInstruction("Schreib „Grüße“ darauf").edits, [{ type: "text", text: "Grüße" }]);
});

Deno.test("an instruction that names nothing known still changes the image visibly", () => {
  assertGreater(distance(edited("add a hat"), edited("resize")), 5);
  assertGreater(distance(edited(""), edited("resize")), 2);
});

Deno.test("the border has its own colour, the image another", () => {
  const { edits } = readInstruction("Make it green with a gold frame");
  assertEquals(edits.map((edit) => [edit.type, "tint" in edit ? edit.tint?.hue : undefined]), [["tint", 145], [
    "border",
    88,
  ]]);
});

Deno.test("a mask lets the edit through where it is transparent, and nowhere else", () => {
  const mask = blank(SQUARE, 255);
  for (let y = 0; y < 120; y++) for (let x = 0; x < 60; x++) mask.data[(y * 120 + x) * 4 + 3] = 0;
  const masked = edited("invert", { mask });
  assertEquals([at(masked, 20, 20), at(masked, 100, 20)], [[35, 195, 205], [60, 190, 80]]);
  const half = blank({ width: 60, height: 60 }, 128);
  const [red = 0] = at(edited("invert", { mask: half }), 20, 20);
  assert(Math.abs(red - 127) < 4, `${red}`);
});

Deno.test("an image fills the size in its own proportions; several share it", () => {
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

Deno.test("resize() keeps even areas even, in both directions and at the edges", () => {
  const even = blank({ width: 50, height: 31 }, 77);
  for (const size of [{ width: 7, height: 5 }, { width: 333, height: 200 }, { width: 1, height: 1 }]) {
    const resized = resize(even, size);
    assertEquals(resized.data.every((value) => value === 77), true);
    assertEquals(resized.data.length, size.width * size.height * 4);
  }
});

/** An upload of an image. */
function upload(pixels: Pixels, orientation = 1): InputImage {
  const turned = orientation >= 5;
  return {
    bytes: encodePng(pixels),
    type: "png",
    width: turned ? pixels.height : pixels.width,
    height: turned ? pixels.width : pixels.height,
    orientation,
  };
}

Deno.test("the canvas edits uploads, follows their orientation and their mask, and gives variations", async () => {
  const pixels = quarters({ width: 96, height: 64 });
  const size = { width: 640, height: 1024 };
  const parts = { kind: "edit", prompt: "resize", size, images: [upload(pixels, 6)] } as const;
  const image = await decodeImage(bytesOf((await events({ ...parts, images: [...parts.images] }))[0]));
  assertEquals([image.width, image.height], [640, 1024]);
  // Orientation 6 is shown a quarter turn clockwise.
  assertEquals([at(image, 100, 100), at(image, 540, 100)], [[60, 80, 210], [220, 60, 50]]);
  const mask = blank({ width: 64, height: 96 }, 255);
  for (let i = 0; i < 64 * 48; i++) mask.data[i * 4 + 3] = 0;
  const masked = await events({ ...parts, prompt: "invert", images: [...parts.images], mask: upload(mask), n: 2 });
  const [first, second] = [await decodeImage(bytesOf(masked[0])), await decodeImage(bytesOf(masked[1]))];
  assertEquals([at(first, 100, 100), at(first, 100, 900)], [[195, 175, 45], [230, 220, 90]]);
  assertNotEquals(at(second, 100, 100), at(first, 100, 100));
  createCanvas().close();
});

Deno.test("an upload that is damaged or too large fails the request with what is the case", async () => {
  const good = upload(quarters({ width: 64, height: 64 }));
  const damaged = { ...good, bytes: good.bytes.slice(0, 90) };
  const { canvas, feed } = await open({ kind: "edit", images: [damaged] });
  const error = await assertRejects(() => feed.read(), GatewayError);
  assertEquals([error.kind, error.param], ["invalid", "image"]);
  assertStringIncludes(error.message, "the png file is damaged");
  await assertRejects(
    () => open({ kind: "edit", images: [{ ...good, width: 5000, height: 5000 }] }),
    GatewayError,
    "5000x5000",
  );
  await assertRejects(
    () => open({ kind: "edit", images: [good], mask: { ...good, width: 5000, height: 5000 } }),
    GatewayError,
    "the most is",
  );
  canvas.close();
});
