/** Images as files and as pixels. All of it happens in a worker: the event loop goes on meanwhile. */
import { imageSize } from "../billing/image_size.ts";
import type { Encoding } from "./codec_files.ts";
import { runJob } from "./codec_pool.ts";
import type { Pixels } from "../canvas/mod.ts";
import { area, checkPixels } from "./pixel_limits.ts";

/** The size of what is no image. */
const NOTHING = { width: 0, height: 0 };

export type { Encoding } from "./codec_files.ts";
export { checkPixels, MOST_PIXELS } from "./pixel_limits.ts";
export { endIdleWorkers } from "./codec_pool.ts";

/** Writes an image as a file. */
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
 * Reads a PNG, JPEG or WebP file of at most 16 million pixels. EXIF orientation is not applied: `orient()` does it.
 * @throws {GatewayError} `invalid`, for anything else and for damaged files
 */
export function decodeImage(bytes: Uint8Array<ArrayBuffer>, options: { signal?: AbortSignal } = {}): Promise<Pixels> {
  return runJob<"decode">({ type: "decode", bytes }, { ...options, pixels: area(imageSize(bytes) ?? NOTHING) });
}

/**
 * A file in the format wanted: the bytes themselves where they are of it already, else a PNG, JPEG or WebP written anew.
 * In the latter case the bytes are handed over, and gone for the caller.
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
