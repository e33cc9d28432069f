/** Conversion between image files and pixels. It runs in a worker, so that the event loop stays free. */
import { imageSize } from "../billing/image_size.ts";
import type { Encoding } from "./codec_files.ts";
import { runJob } from "./codec_pool.ts";
import type { Pixels } from "../canvas/mod.ts";
import { area, checkPixels } from "./pixel_limits.ts";

/** Placeholder size for tasks without an image. */
const NOTHING = { width: 0, height: 0 };

export type { Encoding } from "./codec_files.ts";
export { checkPixels, MOST_PIXELS } from "./pixel_limits.ts";
export { endIdleWorkers } from "./codec_pool.ts";

/** Encodes pixels as a file. */
export function encodeImage(
  pixels: Pixels,
  encoding: Encoding & { signal?: AbortSignal },
): Promise<Uint8Array<ArrayBuffer>> {
  const { signal, format, compression } = encoding;
  return runJob<"encode">({ type: "encode", pixels, encoding: { format, compression } }, {
    signal,
    pixels: area(pixels),
  });
}

/**
 * Decodes a PNG, JPEG or WebP file of at most 16 million pixels. `orient()` applies its EXIF orientation.
 * @throws {GatewayError} `invalid` for other formats and damaged files
 */
export function decodeImage(bytes: Uint8Array<ArrayBuffer>, options: { signal?: AbortSignal } = {}): Promise<Pixels> {
  return runJob<"decode">({ type: "decode", bytes }, { ...options, pixels: area(imageSize(bytes) ?? NOTHING) });
}

/**
 * Converts a file to the requested format. A file that already has it is returned unchanged; otherwise the bytes are
 * transferred to the worker and unusable for the caller.
 * @throws {GatewayError} `invalid`, as `decodeImage`
 */
export async function convertImage(
  bytes: Uint8Array<ArrayBuffer>,
  encoding: Encoding & { signal?: AbortSignal },
): Promise<Uint8Array<ArrayBuffer>> {
  const { signal, format, compression } = encoding;
  const header = imageSize(bytes);
  if (header?.type === format) return bytes;
  if (header !== undefined) checkPixels(header);
  return await runJob<"convert">({ type: "convert", bytes, encoding: { format, compression } }, {
    signal,
    pixels: area(header ?? NOTHING),
    transfer: [bytes.buffer],
  });
}
