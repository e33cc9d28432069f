import { Buffer } from "node:buffer";
import { assert, assertEquals, assertGreater, assertLess, assertNotEquals, assertRejects } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { convertImage } from "../../lib/images/codec.ts";
import { encodeFile, openDecoder } from "../../lib/images/codec_files.ts";
import { encodePng, isOpaque } from "../../lib/images/codec_png.ts";
import { endIdleWorkers } from "../../lib/images/codec_pool.ts";
import { blank, flatten, orient, type Pixels } from "../../lib/canvas/pixels.ts";
import type { ImageFormat, Size } from "../../lib/images/types.ts";
import { imageSize } from "../../lib/billing/image_size.ts";
import { runForKey } from "../../lib/scheduler.ts";
import { skipInQuick } from "../support/skip.ts";

/** A test that may start workers: they are ended before the sanitizers look. */
function testWorkers(name: string, work: () => Promise<void>): void {
  Deno.test(name, async () => {
    try {
      await work();
    } finally {
      endIdleWorkers();
    }
  });
}

function decode(bytes: Uint8Array): Promise<Pixels> {
  return openDecoder().decode(bytes);
}

/** An image of a colour for each pixel. */
function draw({ width, height }: Size, at: (x: number, y: number) => readonly number[]): Pixels {
  const pixels = blank({ width, height }, 255);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) pixels.data.set(at(x, y), (y * width + x) * 4);
  }
  return pixels;
}

const PATTERNS: Record<string, (x: number, y: number) => readonly number[]> = {
  "one colour": () => [200, 30, 60],
  "columns": (x) => [x * 37, x * 11, x],
  "rows": (_, y) => [y * 7, 255 - y * 3, y],
  "a slope": (x, y) => [x * 2 + y * 3, x + y, 2 * x - y],
  "noise": (x, y) => [x * 7919 * (y + 3) % 251, x * y * 104_729 % 241, (x * 31 + y * 17) * 13 % 239],
  "transparency": (x, y) => [x * 9, y * 9, 80, (x + y) * 5],
};

Deno.test("a PNG gives back exactly the pixels it was made of", async () => {
  for (const [name, at] of Object.entries(PATTERNS)) {
    for (const size of [{ width: 1, height: 1 }, { width: 37, height: 23 }, { width: 3, height: 200 }]) {
      const pixels = draw(size, at);
      const file = encodePng(pixels);
      assertEquals(imageSize(file), { type: "png", ...size });
      assertEquals(await decode(file), pixels, name);
    }
  }
});

Deno.test("encodeFile() writes each format in exactly the size", async () => {
  const sizes = [{ width: 16, height: 16 }, { width: 33, height: 65 }, { width: 320, height: 200 }];
  for (const size of sizes) {
    const pixels = draw(size, (x, y) => [x, y, 128]);
    for (const format of ["png", "jpeg", "webp"] as const) {
      // It frees the pixels.
      const file = await encodeFile({ ...pixels, data: pixels.data.slice() }, { format });
      assertEquals(imageSize(file), { type: format, ...size });
    }
  }
});

testWorkers("convertImage() writes the largest size in each format without blocking the event loop", async () => {
  const size = skipInQuick("The largest images") ? { width: 960, height: 640 } : { width: 3840, height: 2160 };
  let source = encodePng(draw(size, (x, y) => [x >> 4, y >> 4, x + y >> 5]));
  for (const format of ["jpeg", "webp", "png"] as const) {
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const file = await convertImage(source.slice(), { format });
    clearInterval(timer);
    source = file;
    assertEquals(imageSize(file), { type: format, ...size });
    assertGreater(turns, 10, format);
  }
});

testWorkers("compression is the quality of jpeg and webp: 0 works and is smaller than 100", async () => {
  const file = encodePng(draw({ width: 200, height: 200 }, PATTERNS["noise"] ?? (() => [])));
  for (const format of ["jpeg", "webp"] as const) {
    const low = await convertImage(file.slice(), { format, compression: 0 });
    const high = await convertImage(file.slice(), { format, compression: 100 });
    assertLess(low.length * 2, high.length, format);
  }
});

Deno.test("a JPEG has the colours of its pixels, and white where they are transparent", async () => {
  const size = { width: 64, height: 32 };
  const file = await encodeFile(draw(size, (x) => x < 32 ? [220, 40, 30, 255] : [0, 0, 0, 0]), { format: "jpeg" });
  const { data } = await decode(file);
  const near = (at: number, color: readonly number[]) =>
    color.every((value, channel) => Math.abs((data[at + channel] ?? 0) - value) < 6);
  assert(near((16 * 64 + 8) * 4, [220, 40, 30, 255]), `${data.subarray(0, 4)}`);
  assert(near((16 * 64 + 56) * 4, [255, 255, 255, 255]));
});

Deno.test("a WebP gives back the colours of its pixels, and what is transparent", async () => {
  const size = { width: 64, height: 32 };
  const file = await encodeFile(draw(size, (x) => x < 32 ? [220, 40, 30, 255] : [20, 40, 200, 0]), { format: "webp" });
  const { data, ...decoded } = await decode(file);
  assertEquals(decoded, size);
  const pixel = [...data.subarray((16 * 64 + 8) * 4, (16 * 64 + 9) * 4)];
  assert([220, 40, 30, 255].every((value, channel) => Math.abs((pixel[channel] ?? 0) - value) < 6), `${pixel}`);
  assertEquals(data[(16 * 64 + 56) * 4 + 3], 0);
});

Deno.test({
  name: "WebP is encoded on a processor without SSE 4.1, which WebAssembly SIMD needs",
  ignore: Deno.build.arch !== "x86_64",
  async fn() {
    const code = `
      import { encodeWebp } from ${JSON.stringify(new URL("../../lib/images/codec_wasm.ts", import.meta.url))};
      const file = await encodeWebp({ width: 8, height: 8, data: new Uint8Array(256).fill(200) }, 90);
      console.log(new TextDecoder().decode(file.slice(8, 12)));`;
    const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--no-check", "--v8-flags=--no-enable-sse4-1", code],
      cwd: new URL("../..", import.meta.url),
      stdin: "null",
    }).output();
    assertEquals(new TextDecoder().decode(stdout), "WEBP\n", new TextDecoder().decode(stderr));
  },
});

/** A PNG header with this size, without any pixels. */
function header(width: number, height: number): Uint8Array<ArrayBuffer> {
  const file = encodePng(blank({ width: 1, height: 1 }, 9));
  new DataView(file.buffer).setUint32(16, width);
  new DataView(file.buffer).setUint32(20, height);
  return file;
}

/** A JPEG whose scan is there several times. */
function repeatScan(jpeg: Uint8Array, times: number): Uint8Array<ArrayBuffer> {
  const start = jpeg.findIndex((byte, at) => byte === 0xff && jpeg[at + 1] === 0xda);
  const scan = jpeg.subarray(start, -2);
  return new Uint8Array(Buffer.concat([jpeg.subarray(0, start), ...Array(times).fill(scan), jpeg.subarray(-2)]));
}

testWorkers("convertImage() refuses unreadable and oversized images", async () => {
  const png = encodePng(draw({ width: 64, height: 64 }, PATTERNS["noise"] ?? (() => [])));
  const jpeg = await encodeFile(draw({ width: 64, height: 64 }, (x, y) => [x, y, 0]), { format: "jpeg" });
  const webp = await encodeFile(draw({ width: 64, height: 64 }, (x, y) => [x, y, 0]), { format: "webp" });
  const cases: [name: string, bytes: Uint8Array<ArrayBuffer>, says: string][] = [
    ["nothing", new Uint8Array(), "expected a PNG, JPEG or WebP"],
    ["text", new TextEncoder().encode("<svg/>"), "expected a PNG, JPEG or WebP"],
    ["a WebP cut short", webp.slice(0, webp.length / 2), "the webp file is damaged"],
    ["a GIF", new TextEncoder().encode("GIF89a\x01\0\x01\0\0\0\0;"), "expected a PNG, JPEG or WebP"],
    ["a PNG cut short", png.slice(0, png.length / 2), "the png file is damaged"],
    ["a PNG with a changed byte", png.with(png.length / 2 | 0, 1 + (png[png.length / 2 | 0] ?? 0)), "damaged"],
    ["a JPEG cut in its header", jpeg.slice(0, 200), "Cannot decode the image"],
    ["a JPEG of 101 scans", repeatScan(jpeg, 101), "the jpeg file is damaged"],
    ["a PNG of too many pixels", header(12_000, 12_000), "Cannot decode an image of 12000x12000"],
    ["a PNG of a wrong size", header(4000, 4000), "damaged"],
  ];
  for (const [name, bytes, says] of cases) {
    const format = name.includes("PNG") ? "jpeg" : "png";
    const error = await assertRejects(() => convertImage(bytes, { format }), GatewayError, says, name);
    assertEquals([error.kind, error.param], ["invalid", "image"], name);
  }
  for (const file of [png, repeatScan(jpeg, 100)]) {
    assertEquals(imageSize(await convertImage(file, { format: "webp" }))?.width, 64);
  }
});

testWorkers("convertImage() changes the format only", async () => {
  const png = encodePng(draw({ width: 48, height: 80 }, (x, y) => [x * 5, y * 3, 99]));
  assert(await convertImage(png, { format: "png" }) === png);
  for (const format of ["jpeg", "webp"] as ImageFormat[]) {
    const file = await convertImage(png.slice(), { format, compression: 95 });
    assertEquals(imageSize(file), { type: format, width: 48, height: 80 });
  }
  await assertRejects(() => convertImage(new Uint8Array(9), { format: "png" }), GatewayError, "expected a PNG");
});

testWorkers(
  "convertImage() ends with its signal, before it began and while it runs, and the next one is done",
  async () => {
    const file = encodePng(draw({ width: 512, height: 512 }, PATTERNS["noise"] ?? (() => [])));
    const convert = (format: ImageFormat, signal?: AbortSignal) =>
      convertImage(file.slice(), { format, ...(signal !== undefined && { signal }) });
    await assertRejects(
      () => convert("jpeg", AbortSignal.abort("early")).catch(wrap),
      Error,
      "early",
    );
    const first = new AbortController(), second = new AbortController();
    const running = convert("webp", first.signal).catch(wrap);
    const queued = [1, 2, 3].map(() => convert("webp", second.signal).catch(wrap));
    const last = convert("jpeg");
    second.abort("waited");
    for (const job of queued) await assertRejects(() => job, Error, "waited");
    first.abort("stopped");
    await assertRejects(() => running, Error, "stopped");
    assertEquals(imageSize(await last)?.type, "jpeg");
  },
);

function wrap(reason: unknown): never {
  throw new Error(String(reason));
}

testWorkers("convertImage() queues a bounded number of images, and refuses others as overloaded", async () => {
  const stop = new AbortController();
  const file = encodePng(draw({ width: 64, height: 64 }, PATTERNS["noise"] ?? (() => [])));
  const jobs = Array.from({ length: 300 }, () => convertImage(file.slice(), { format: "webp", signal: stop.signal }));
  const results = Promise.allSettled(jobs);
  stop.abort();
  const refused = (await results).flatMap((result) =>
    result.status === "rejected" && result.reason instanceof GatewayError ? [result.reason] : []
  );
  assertGreater(refused.length, 20);
  assertEquals(refused[0]?.kind, "overloaded");
  assertNotEquals(refused[0]?.retryAfterMs, undefined);
});

testWorkers("convertImage() converts the images of API keys in turn", async () => {
  const file = encodePng(draw({ width: 64, height: 64 }, PATTERNS["noise"] ?? (() => [])));
  const order: string[] = [];
  await Promise.all(["a", "a", "a", "a", "a", "a", "b"].map(async (key) => {
    await runForKey(key, () => convertImage(file.slice(), { format: "webp" }));
    order.push(key);
  }));
  assertLess(order.indexOf("b"), 4);
});

Deno.test("orient() applies the EXIF orientation", () => {
  // Pixels numbered by rows, 3 wide and 2 high.
  const pixels = draw({ width: 3, height: 2 }, (x, y) => [y * 3 + x + 1, 0, 0]);
  const cases: [orientation: number, width: number, numbers: number[]][] = [
    [1, 3, [1, 2, 3, 4, 5, 6]],
    [2, 3, [3, 2, 1, 6, 5, 4]],
    [3, 3, [6, 5, 4, 3, 2, 1]],
    [4, 3, [4, 5, 6, 1, 2, 3]],
    [5, 2, [1, 4, 2, 5, 3, 6]],
    [6, 2, [4, 1, 5, 2, 6, 3]],
    [7, 2, [6, 3, 5, 2, 4, 1]],
    [8, 2, [3, 6, 2, 5, 1, 4]],
    [0, 3, [1, 2, 3, 4, 5, 6]],
    [9, 3, [1, 2, 3, 4, 5, 6]],
  ];
  for (const [orientation, width, numbers] of cases) {
    const shown = orient(pixels, orientation);
    assertEquals(shown.width, width);
    assertEquals([...shown.data].filter((_, at) => at % 4 === 0), numbers, `orientation ${orientation}`);
  }
});

Deno.test("flatten() blends an image with white", () => {
  const pixels = draw({ width: 2, height: 1 }, (x) => [0, 100, 200, x === 0 ? 255 : 51]);
  assert(!isOpaque(pixels));
  assertEquals([...flatten(pixels).data], [0, 100, 200, 255, 204, 224, 244, 255]);
  assert(isOpaque(pixels));
});
