/** Limits the pixels of each request and of the whole process, for models that run in this process. */
import type { Config } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { ImageRequest, Size } from "./types.ts";
import { type AdmissionQueue, createAdmissionQueue } from "../admission_queue.ts";

/**
 * Maximum number of pixels of an image that is decoded. They take 64 MB of memory, twice that of the largest generated
 * image.
 */
const MAX_PIXELS = 16_777_216;

/** Maximum number of requests that may wait for memory. */
const MAX_WAITING = 64;

/** `retry-after` of refused requests, in milliseconds. */
const RETRY_MS = 5_000;

/** Checks the size of an image. @throws {GatewayError} `invalid` for an image with too many pixels */
export function checkPixels({ width, height }: Size): void {
  if (width * height <= MAX_PIXELS) return;
  throw new GatewayError(
    "invalid",
    `Cannot decode an image of ${width}x${height}: the maximum is ${MAX_PIXELS} pixels, such as 4096x4096`,
    { param: "image" },
  );
}

/**
 * Counts the pixels of uploads, mask and requested images, which stay in memory until the answer is read. A stream
 * makes one image at a time, so only one is counted.
 * @throws {GatewayError} `invalid` above `resource_limits.image_request_pixels`
 */
export function countPixels(
  { images, mask, size, n, stream }: ImageRequest,
  { resource_limits: { image_request_pixels: maxPixels } }: Pick<Config, "resource_limits">,
): number {
  const uploads = [...images, ...(mask === undefined ? [] : [mask])].reduce((sum, image) => sum + pixelCount(image), 0);
  const pixels = uploads + pixelCount(size) * (stream ? 1 : n);
  if (pixels <= maxPixels) return pixels;
  throw new GatewayError(
    "invalid",
    `Cannot process ${pixels} pixels in one request: its uploads have ${uploads}, the requested images ` +
      `${pixels - uploads}, and the maximum is ${maxPixels} (resource_limits.image_request_pixels)`,
    { param: uploads > pixels - uploads ? "image" : "n" },
  );
}

/** Creates the queue in front of work on pixels. */
export function createPixelQueue({ resource_limits: limits }: Config): AdmissionQueue {
  return createAdmissionQueue({
    concurrent: limits.image_pixels,
    waiting: MAX_WAITING,
    waitMs: limits.image_wait_ms,
    busy: () =>
      new GatewayError("overloaded", "Too many images are being generated: try again later", {
        retryAfterMs: RETRY_MS,
      }),
  });
}

/** Returns the number of pixels of a size. */
export function pixelCount({ width, height }: Size): number {
  return width * height;
}
