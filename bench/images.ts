// deno-lint-ignore-file no-console
/**
 * Time, longest stall of the event loop and memory while the embedded painter paints, edits and converts.
 *
 *     deno run -A bench/images.ts
 */
import { Buffer } from "node:buffer";
import { UnsupportedParameters } from "../lib/protocols/canonical/unsupported_parameters.ts";
import { EMBEDDED_UPSTREAM } from "../lib/catalog/embedded.ts";
import { modelSchema } from "../lib/catalog/model.ts";
import { convertImage } from "../lib/images/codec.ts";
import type { ImageFormat, ImageRequest, InputImage, Size } from "../lib/images/types.ts";
import { createCanvas } from "../lib/upstreams/embedded/mod.ts";
import { watch } from "./watch.ts";

const SIZES: Size[] = [
  { width: 1024, height: 1024 },
  { width: 1536, height: 1024 },
  { width: 3840, height: 2160 },
  { width: 2880, height: 2880 },
];
const FORMATS: ImageFormat[] = ["png", "jpeg", "webp"];
const PROMPT = "A lake between mountains at sunset, with a sailboat and birds";
const model = modelSchema.parse({
  id: "sluice/canvas",
  created: 0,
  context_length: 1000,
  pricing: { prompt: "0", completion: "0" },
  targets: [{ upstream: EMBEDDED_UPSTREAM, model: "canvas" }],
});
const canvas = createCanvas();

/** Does the work and prints how long it took, and the longest time the event loop did not come round. */
async function show(name: string, work: () => Promise<Uint8Array<ArrayBuffer>>): Promise<Uint8Array<ArrayBuffer>> {
  const { value: bytes, ms, stallMs } = await watch(work);
  const columns = [
    `${ms.toFixed(0)} ms`,
    `stall ${stallMs.toFixed(1)} ms`,
    `${(bytes.length / 1e6).toFixed(2)} MB`,
    `RSS ${(Deno.memoryUsage().rss / 1e6).toFixed(0)} MB`,
  ];
  console.log(name.padEnd(34) + columns.map((column) => column.padStart(16)).join(""));
  return bytes;
}

async function make(parts: Partial<ImageRequest>): Promise<Uint8Array<ArrayBuffer>> {
  const [target] = model.targets;
  if (target === undefined) throw new Error("The model has no target");
  const request: ImageRequest = {
    kind: "generation",
    model: model.id,
    prompt: PROMPT,
    quality: "high",
    n: 1,
    requestedSize: "auto",
    size: { width: 1536, height: 1024 },
    format: "png",
    background: "auto",
    stream: false,
    partialImages: 0,
    images: [],
    rest: {},
    ...parts,
  };
  const { signal } = new AbortController();
  const feed = await canvas.create({
    ...{ request, model, target, signal, dropped: new UnsupportedParameters() },
    identify: () => {},
  });
  const event = await feed.read();
  if (event === undefined || event.type === "failed") throw new Error("No image was made", { cause: event });
  return Uint8Array.from(Buffer.from(event.base64, "base64"));
}

await show("the first image, 1024x1024 png", () => make({ size: { width: 1024, height: 1024 } }));
let largest: Uint8Array<ArrayBuffer> = new Uint8Array();
for (const size of SIZES) {
  for (const format of FORMATS) {
    const file = await show(`paint ${size.width}x${size.height} ${format}`, () => make({ size, format }));
    if (size.width === 3840 && format === "png") largest = file;
  }
}
const upload: InputImage = { bytes: largest, type: "png", width: 3840, height: 2160, orientation: 1 };
const size = { width: 3840, height: 2160 };
for (const prompt of ["sepia", "blur it", "tint it blue with a white border", 'write "Hello"', "rotate it"]) {
  await show(`edit 3840x2160: ${prompt}`, () => make({ kind: "edit", prompt, size, images: [upload] }));
}
for (const format of FORMATS.slice(1)) {
  await show(`convert 3840x2160 png to ${format}`, () => convertImage(largest.slice(), { format }));
}
canvas.close();
