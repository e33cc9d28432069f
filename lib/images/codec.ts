/** Pictures as files and as pixels. All of it happens in a worker: the event loop goes on meanwhile. */
import { imageSize } from "../metering/image_size.ts";
import type { Encoding } from "./codec_files.ts";
import { runJob } from "./codec_pool.ts";
import type { Pixels } from "./pixels.ts";

export type { Encoding } from "./codec_files.ts";
export { checkPixels, MOST_PIXELS } from "./codec_files.ts";
export { endIdleWorkers } from "./codec_pool.ts";

/** Writes a picture as a file. */
export function encodeImage(
  pixels: Pixels,
  encoding: Encoding & { signal?: AbortSignal },
): Promise<Uint8Array<ArrayBuffer>> {
  const { signal, format, compression } = encoding;
  return runJob<"encode">({ type: "encode", pixels, encoding: { format, compression } }, { signal });
}

/**
 * Reads a PNG or JPEG file of at most 16 million pixels. EXIF orientation is not applied: `orient()` does it.
 * @throws {GatewayError} `invalid`, for anything else and for damaged files
 */
export function decodeImage(bytes: Uint8Array<ArrayBuffer>, options: { signal?: AbortSignal } = {}): Promise<Pixels> {
  return runJob<"decode">({ type: "decode", bytes }, options);
}

/**
 * A file in the format wanted: the bytes themselves where they are of it already, else a PNG or JPEG written anew.
 * @throws {GatewayError} `invalid`, as `decodeImage`
 */
export async function convertImage(
  bytes: Uint8Array<ArrayBuffer>,
  encoding: Encoding & { signal?: AbortSignal },
): Promise<Uint8Array<ArrayBuffer>> {
  const { signal, format, compression } = encoding;
  if (imageSize(bytes)?.type === format) return bytes;
  return await runJob<"convert">({ type: "convert", bytes, encoding: { format, compression } }, { signal });
}
