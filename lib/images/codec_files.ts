/** Decodes and encodes image files synchronously. That takes up to seconds, so only the worker may call it. */
import { GatewayError } from "../errors.ts";
import { imageSize } from "../billing/image_size.ts";
import { encodePng } from "./codec_png.ts";
import { encodeJpeg, encodeWebp, openWebpDecoder } from "./codec_wasm.ts";
import { flatten, free, type Pixels } from "../canvas/mod.ts";
import { checkPixels } from "./pixel_limits.ts";
import type { ImageFormat } from "./types.ts";

/**
 * Maximum number of scans of a JPEG. Progressive files have about ten. A scan of 30 bytes takes as long to decode as
 * any other: 30 ms for 16 million grey pixels.
 */
const MAX_SCANS = 100;

/** Default quality of JPEG and WebP. */
const DEFAULT_QUALITY = 90;

/** Output format and quality. */
export interface Encoding {
  format: ImageFormat;
  /** Quality of jpeg and webp, 0 to 100; absent: 90. */
  compression?: number;
}

/** Decodes the files of one task. */
export interface Decoder {
  /** Decodes a PNG, JPEG or WebP, recognized by content. @throws {GatewayError} `invalid` for anything else */
  decode(bytes: Uint8Array): Promise<Pixels>;
}

/**
 * Creates a decoder for one task. WebAssembly memory only grows, so the files of a task share an instance. Tasks never
 * share one: pixels left in its memory cannot leak into another request.
 */
export function openDecoder(): Decoder {
  const read = { png: once(openPng), jpeg: once(openJpeg), webp: once(openWebpDecoder) };
  return {
    async decode(bytes) {
      const header = imageSize(bytes);
      if (header === undefined || header.type === "gif") {
        throw new GatewayError("invalid", "Cannot decode the image: expected a PNG, JPEG or WebP", {
          param: "image",
        });
      }
      checkPixels(header);
      const pixels = await read[header.type]().then((decode) => decode(bytes)).catch((error) => {
        throw new GatewayError("invalid", `Cannot decode the image: the ${header.type} file is damaged`, {
          param: "image",
          cause: error,
        });
      });
      if (pixels.width !== header.width || pixels.height !== header.height) {
        throw new GatewayError("invalid", "Cannot decode the image: its size differs from its header", {
          param: "image",
        });
      }
      return pixels;
    },
  };
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => result ??= make();
}

async function openPng(): Promise<(bytes: Uint8Array) => Pixels> {
  const decoder = await (await import("imagescript/png")).default.init();
  return (bytes) => {
    const { width, height, framebuffer } = decoder.decode(bytes);
    return { width, height, data: framebuffer };
  };
}

async function openJpeg(): Promise<(bytes: Uint8Array) => Pixels> {
  const decoder = await (await import("imagescript/jpeg")).default.init();
  return (bytes) => {
    if (countScans(bytes) > MAX_SCANS) throw new RangeError(`it has more than ${MAX_SCANS} scans`);
    const { width, height, format, buffer } = decoder.decode(bytes);
    const data = toRgba(buffer, { format, count: width * height });
    free(buffer);
    return { width, height, data };
  };
}

/** Counts the scans of a JPEG up to its end. A preview or a video may follow it, or be part of a segment. */
function countScans(bytes: Uint8Array): number {
  let scans = 0;
  for (let at = bytes.indexOf(0xff, 2); at >= 0; at = bytes.indexOf(0xff, at)) {
    const marker = bytes[++at] ?? 0xd9;
    if (marker === 0xd9) break;
    if (marker === 0xda) scans++;
    // Data (00), fill bytes (FF) and restarts have no length.
    const hasLength = marker > 0x01 && marker < 0xff && !(marker >= 0xd0 && marker <= 0xd8);
    if (hasLength) at += 1 + (bytes[at + 1] ?? 0) * 256 + (bytes[at + 2] ?? 0);
  }
  return scans;
}

/** Number of channels by the JPEG decoder's format: grey, RGB, CMYK. */
const CHANNELS = [1, 3, 4];

/** Converts the JPEG decoder's output (grey, RGB or CMYK) to RGBA. */
function toRgba(from: Uint8Array, { format, count }: { format: number; count: number }): Uint8Array<ArrayBuffer> {
  const channels = CHANNELS[format] ?? 4;
  const to = new Uint8Array(count * 4).fill(255);
  for (let i = 0, start = 0; i < count; i++, start += channels) {
    for (let channel = 0; channel < 3; channel++) {
      const value = from[start + (channels === 1 ? 0 : channel)] ?? 0;
      to[i * 4 + channel] = channels === 4 ? (255 - value) * (255 - (from[start + 3] ?? 0)) / 255 : value;
    }
  }
  return to;
}

/** Encodes an image and frees its pixels. */
export async function encodeFile(pixels: Pixels, { format, compression }: Encoding): Promise<Uint8Array<ArrayBuffer>> {
  const file = await encode(pixels, format, compression ?? DEFAULT_QUALITY);
  free(pixels.data);
  return file;
}

async function encode(pixels: Pixels, format: ImageFormat, quality: number): Promise<Uint8Array<ArrayBuffer>> {
  switch (format) {
    case "png":
      return encodePng(pixels);
    case "jpeg":
      return await encodeJpeg(flatten(pixels), quality);
    case "webp":
      return await encodeWebp(pixels, quality);
  }
}
