/** Converts image files between formats. The work runs in a worker, so that it does not block the event loop. */
import { imageSize } from "../billing/image_size.ts";
import type { Encoding } from "./codec_files.ts";
import { runJob } from "./codec_pool.ts";
import { checkPixels, pixelCount } from "./pixel_limits.ts";

/**
 * Converts a PNG, JPEG or WebP file of at most 16 million pixels to the requested format. A file that already has this
 * format is returned unchanged. Otherwise the bytes are transferred to the worker, and the caller can no longer use
 * them.
 * @throws {GatewayError} `invalid` for other formats and damaged files
 */
export async function convertImage(
  bytes: Uint8Array<ArrayBuffer>,
  encoding: Encoding & { signal?: AbortSignal },
): Promise<Uint8Array<ArrayBuffer>> {
  const { signal, format, compression } = encoding;
  const header = imageSize(bytes);
  if (header?.type === format) return bytes;
  if (header !== undefined) checkPixels(header);
  return await runJob({ type: "convert", bytes, encoding: { format, compression } }, {
    signal,
    pixels: header === undefined ? 0 : pixelCount(header),
    transfer: [bytes.buffer],
  });
}
