/** Reads headers of uploaded images. The type comes from the content, never from the file name. */
import { GatewayError } from "../errors.ts";
import { imageSize } from "../billing/image_size.ts";
import { orientationOf } from "./orientation.ts";
import { sizeText } from "./size.ts";
import type { InputImage } from "./types.ts";

/** Most pixels and longest side of an upload, as a protection of the decoders. */
const MAX_PIXELS = 64_000_000;
const LONGEST_SIDE = 16_384;

/**
 * Reads the header of an uploaded image. Pixels are not decoded.
 * @param field field name for errors
 * @throws {GatewayError} `invalid` for other formats and for images that are too large
 */
export async function readUpload(file: File, field: string): Promise<InputImage> {
  if (file.size === 0) throw refuse(field, "the file is empty, expected a PNG, JPEG or WebP image");
  const bytes = new Uint8Array(await file.arrayBuffer());
  const header = imageSize(bytes);
  if (header === undefined) throw refuse(field, "the file is neither PNG nor JPEG nor WebP, or its header is damaged");
  const { type } = header;
  if (type === "gif") throw refuse(field, "expected PNG, JPEG or WebP by content, this file is GIF");
  const { width, height } = header;
  if (width * height > MAX_PIXELS || Math.max(width, height) > LONGEST_SIDE) {
    throw refuse(
      field,
      `the image has ${sizeText(header)} pixels, expected at most ${MAX_PIXELS} and ${LONGEST_SIDE} on a side`,
    );
  }
  const orientation = orientationOf(bytes);
  const turned = orientation >= 5;
  return { bytes, type, orientation, width: turned ? height : width, height: turned ? width : height };
}

/**
 * Checks that a mask is a PNG of the image's size.
 * @throws {GatewayError} `invalid`
 */
export function checkMask(mask: InputImage, image: InputImage): void {
  if (mask.type !== "png") throw refuse("mask", "expected a PNG, whose transparent parts are to be edited");
  if (mask.width === image.width && mask.height === image.height) return;
  throw refuse("mask", `expected the size of the first image, ${sizeText(image)}, not ${sizeText(mask)}`);
}

/** Creates the error for an invalid image field. */
export function refuse(field: string, why: string): GatewayError {
  return new GatewayError("invalid", `Invalid value for ${field}: ${why}`, { param: field });
}
