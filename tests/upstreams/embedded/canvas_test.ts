import { assertEquals, assertGreater, assertNotEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { Buffer } from "node:buffer";
import { UnsupportedParameters } from "../../../lib/protocols/canonical/unsupported_parameters.ts";
import { modelSchema } from "../../../lib/catalog/model.ts";
import { GatewayError } from "../../../lib/errors.ts";
import { encodePng } from "../../../lib/images/codec_png.ts";
import { openDecoder } from "../../../lib/images/codec_files.ts";
import { blank, type Pixels } from "../../../lib/canvas/pixels.ts";
import type { ImageEvent, ImageRequest, InputImage, Size } from "../../../lib/images/types.ts";
import { imageSize } from "../../../lib/billing/image_size.ts";
import { createCanvas } from "../../../lib/upstreams/embedded/mod.ts";
import { at, distance, quarters } from "../../canvas/images.ts";
import { imageRequest } from "../../images/request.ts";
import { skipInQuick } from "../../support/skip.ts";
import { plainModel } from "../../support/plain_model.ts";

const MODEL = modelSchema.parse(plainModel({
  id: "sluice/canvas",
  targets: [{ upstream: "embedded", model: "canvas" }],
}));
const USUAL = { model: MODEL.id, prompt: "A red sailboat at sunset", requestedSize: "auto" } as const;

/** A test that may start workers. The next one uses them too, because a new worker takes half a second. */
function testCanvas(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, fn, sanitizeOps: false, sanitizeResources: false });
}

/** The feed of one request, and what ends it. */
async function open(parts: Partial<ImageRequest>) {
  const [target] = MODEL.targets;
  if (target === undefined) throw new Error("The model has no target");
  const stop = new AbortController();
  const dropped = new UnsupportedParameters();
  const request = imageRequest({ ...USUAL, ...parts });
  const call = { request, model: MODEL, target, signal: stop.signal, dropped, identify: () => {} };
  return { feed: await createCanvas().create(call), stop, dropped };
}

async function events(parts: Partial<ImageRequest>): Promise<ImageEvent[]> {
  const { feed } = await open(parts);
  const all: ImageEvent[] = [];
  for (let event = await feed.read(); event !== undefined; event = await feed.read()) all.push(event);
  return all;
}

function bytesOf(event: ImageEvent | undefined): Uint8Array<ArrayBuffer> {
  if (event === undefined || event.type === "failed") throw new Error("There is no image");
  return Uint8Array.from(Buffer.from(event.base64, "base64"));
}

testCanvas("the canvas paints every format in exact size, up to the largest", async () => {
  const small = { width: 320, height: 208 };
  const tall = { width: 112, height: 336 };
  const cases: [ImageRequest["format"], Size][] = [["png", small], ["jpeg", tall], ["webp", small]];
  if (!skipInQuick("The largest images")) cases.push(["png", { width: 3840, height: 2160 }]);
  for (const [format, size] of cases) {
    const [event, ...others] = await events({ size, format });
    assertEquals(others, []);
    assertEquals(imageSize(bytesOf(event)), { type: format, ...size });
  }
});

testCanvas("the canvas is deterministic for a request, and varies with prompt and index", async () => {
  const size = { width: 160, height: 112 };
  const [first, second] = await events({ n: 2, size });
  assertEquals([first?.index, second?.index], [0, 1]);
  assertEquals(await events({ n: 2, size }), [first, second] as ImageEvent[]);
  assertNotEquals(bytesOf(first), bytesOf(second));
  assertNotEquals(bytesOf(first), bytesOf((await events({ prompt: "A red sailboat at sunset.", size }))[0]));
});

testCanvas("a stream has the requested previews in full size, with increasing detail", async () => {
  for (const partialImages of skipInQuick("Streams with one preview, and with none") ? [3] : [0, 1, 3]) {
    const size = { width: 160, height: 112 };
    const all = await events({ stream: true, partialImages, n: 2, size });
    const steps = Array.from({ length: partialImages }, (_, step) => step);
    assertEquals(
      all.map((event) => [event.type, event.index, "step" in event ? event.step : undefined]),
      [0, 1].flatMap((index) => [...steps.map((step) => ["partial", index, step]), ["image", index, undefined]]),
    );
    const images: Pixels[] = [];
    for (const event of all.slice(0, partialImages + 1)) images.push(await openDecoder().decode(bytesOf(event)));
    const last = images.at(-1);
    const distances = images.map((image) => distance(image, last ?? image));
    assertEquals(distances, [...distances].sort((a, b) => b - a));
    assertEquals(images.map(({ width, height }) => [width, height]), images.map(() => [160, 112]));
  }
});

testCanvas("the event loop runs while the canvas paints", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await events({ size: { width: 640, height: 640 } });
  clearInterval(timer);
  assertGreater(turns, 20);
});

testCanvas("the feed ends after cancel(), and rejects with the reason after an abort", async () => {
  const cancelled = await open({ n: 3 });
  const pending = cancelled.feed.read();
  cancelled.feed.cancel();
  cancelled.feed.cancel();
  assertEquals(await pending, undefined);
  assertEquals(await cancelled.feed.read(), undefined);
  const aborted = await open({ n: 3 });
  const read = aborted.feed.read();
  aborted.stop.abort(new Error("The client has disconnected"));
  await assertRejects(() => read, Error, "The client has disconnected");
  await assertRejects(() => aborted.feed.read(), Error, "The client has disconnected");
});

testCanvas("the canvas names the members that it does not use", async () => {
  const { dropped, feed } = await open({ rest: { style: "vivid" } });
  feed.cancel();
  assertEquals(dropped.names, ["style"]);
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

testCanvas("the canvas edits uploads by orientation and mask, and varies images", async () => {
  const pixels = quarters({ width: 96, height: 64 });
  const size = { width: 320, height: 512 };
  const parts = { kind: "edit", prompt: "resize", size, images: [upload(pixels, 6)] } as const;
  const image = await openDecoder().decode(bytesOf((await events({ ...parts, images: [...parts.images] }))[0]));
  assertEquals([image.width, image.height], [320, 512]);
  // Orientation 6 is displayed rotated a quarter turn clockwise.
  assertEquals([at(image, 50, 50), at(image, 270, 50)], [[60, 80, 210], [220, 60, 50]]);
  const mask = blank({ width: 64, height: 96 }, 255);
  for (let i = 0; i < 64 * 48; i++) mask.data[i * 4 + 3] = 0;
  const masked = await events({ ...parts, prompt: "invert", images: [...parts.images], mask: upload(mask), n: 2 });
  const [first, second] = [
    await openDecoder().decode(bytesOf(masked[0])),
    await openDecoder().decode(bytesOf(masked[1])),
  ];
  assertEquals([at(first, 50, 50), at(first, 50, 450)], [[195, 175, 45], [230, 220, 90]]);
  assertNotEquals(at(second, 50, 50), at(first, 50, 50));
});

testCanvas("a damaged or too large upload fails the request with the reason", async () => {
  const good = upload(quarters({ width: 64, height: 64 }));
  const damaged = { ...good, bytes: good.bytes.slice(0, 90) };
  const { feed } = await open({ kind: "edit", images: [damaged] });
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
    "the maximum is",
  );
  // This is the last test.
  createCanvas().close();
});
