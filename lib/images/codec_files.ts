/** Files to pixels and back. It blocks for up to seconds: for the worker only. */
import { GatewayError } from "../errors.ts";
import { imageSize } from "../metering/image_size.ts";
import { encodePng } from "./codec_png.ts";
import { flatten, type Pixels } from "./pixels.ts";
import type { ImageFormat, Size } from "./types.ts";

/** Most pixels that are ever decoded: 64 MB of memory, twice the largest picture that is made. */
export const MOST_PIXELS = 16_777_216;

/** Quality of jpeg and webp where the request names none. */
const QUALITY = 90;

/** How a picture is written. */
export interface Encoding {
  format: ImageFormat;
  /** Quality of jpeg and webp, 0 to 100; absent: 90. */
  compression?: number;
}

/** @throws {GatewayError} `invalid`, for a size that is never decoded */
export function checkPixels({ width, height }: Size): void {
  if (width * height <= MOST_PIXELS) return;
  throw new GatewayError(
    "invalid",
    `Cannot decode a picture of ${width}x${height}: the most is ${MOST_PIXELS} pixels, such as 4096x4096`,
    { param: "image" },
  );
}

/** Decodes a PNG or a JPEG, told apart by its content. @throws {GatewayError} `invalid`, for anything else */
export async function decodeFile(bytes: Uint8Array): Promise<Pixels> {
  const header = imageSize(bytes);
  if (header === undefined || (header.type !== "png" && header.type !== "jpeg")) {
    throw new GatewayError("invalid", "Cannot decode the picture: expected a PNG or a JPEG", { param: "image" });
  }
  checkPixels(header);
  const pixels = await decode(header.type, bytes).catch((error) => {
    throw new GatewayError("invalid", `Cannot decode the picture: the ${header.type} file is damaged`, {
      param: "image",
      cause: error,
    });
  });
  if (pixels.width !== header.width || pixels.height !== header.height) {
    throw new GatewayError("invalid", "Cannot decode the picture: it is not of the size its header says", {
      param: "image",
    });
  }
  return pixels;
}

async function decode(type: "png" | "jpeg", bytes: Uint8Array): Promise<Pixels> {
  if (type === "png") {
    const { default: png } = await import("imagescript/png");
    const { width, height, framebuffer } = (await png.init()).decode(bytes);
    return { width, height, data: framebuffer };
  }
  const { default: jpeg } = await import("imagescript/jpeg");
  const { width, height, format, buffer } = (await jpeg.init()).decode(bytes);
  return { width, height, data: toRgba(buffer, { format, count: width * height }) };
}

/** What the JPEG decoder gives: grey, RGB or CMYK. */
function toRgba(from: Uint8Array, { format, count }: { format: number; count: number }): Uint8Array<ArrayBuffer> {
  const channels = format === 0 ? 1 : format === 1 ? 3 : 4;
  const to = new Uint8Array(count * 4).fill(255);
  for (let i = 0, at = 0; i < count; i++, at += channels) {
    for (let channel = 0; channel < 3; channel++) {
      const value = from[at + (channels === 1 ? 0 : channel)] ?? 0;
      to[i * 4 + channel] = channels === 4 ? (255 - value) * (255 - (from[at + 3] ?? 0)) / 255 : value;
    }
  }
  return to;
}

/** Encodes a picture. The pixels may be changed: JPEG has no transparency. */
export async function encodeFile(pixels: Pixels, { format, compression }: Encoding): Promise<Uint8Array<ArrayBuffer>> {
  if (format === "png") return encodePng(pixels);
  // Native code, so it is loaded only by who asks for these formats. The synchronous calls: a worker may be ended at any
  // time, and a call that is still running on another thread would come back to nobody.
  const { default: encoders } = await import("imagescript/encoders").catch((error) => {
    throw new GatewayError(
      "internal",
      `Cannot write ${format} here: the encoder may not be loaded; png needs none`,
      { cause: error },
    );
  });
  const { width, height, data } = format === "jpeg" ? flatten(pixels) : pixels;
  const quality = Math.max(1, Math.min(compression ?? QUALITY, 100));
  return encoders[format].encode(data, { width, height, quality });
}
