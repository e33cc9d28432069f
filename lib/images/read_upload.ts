/** Reads the headers of uploaded images. The content decides the type of an image, not the file name. */
import { GatewayError } from "../errors.ts";
import { imageSize } from "../billing/image_size.ts";
import { orientationOf } from "./orientation.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import { sizeText } from "./size.ts";
import type { InputImage } from "./types.ts";

/** Most pixels of an upload. The limit protects the decoders. */
const MAX_PIXELS = 64_000_000;
/** Longest side of an upload, in pixels. The limit protects the decoders. */
const MAX_SIDE = 16_384;
/** Bytes of an upload that are copied in one turn of the event loop. */
const SLICE_BYTES = 4_194_304;

/**
 * Reads the header of an uploaded image. Pixels are not decoded.
 * @param field name of the form field, for errors
 * @throws {GatewayError} `invalid` for other formats and for images that are too large
 */
export async function readUpload(file: File, field: string): Promise<InputImage> {
  if (file.size === 0) throw refuse(field, "the file is empty, expected a PNG, JPEG or WebP image");
  const bytes = await copyBytes(file);
  const header = imageSize(bytes);
  if (header === undefined) throw refuse(field, "the file is neither PNG nor JPEG nor WebP, or its header is damaged");
  const { type } = header;
  if (type === "gif") throw refuse(field, "expected PNG, JPEG or WebP by content, this file is GIF");
  const { width, height } = header;
  if (width * height > MAX_PIXELS || Math.max(width, height) > MAX_SIDE) {
    throw refuse(
      field,
      `the image has ${sizeText(header)} pixels, expected at most ${MAX_PIXELS} and ${MAX_SIDE} on a side`,
    );
  }
  const orientation = orientationOf(bytes);
  const isRotated = orientation >= 5;
  return { bytes, type, orientation, width: isRotated ? height : width, height: isRotated ? width : height };
}

/** Copies a file into memory, in slices: 50 MB at once blocked the event loop for 130 ms. */
async function copyBytes(file: File): Promise<Uint8Array<ArrayBuffer>> {
  if (file.size <= SLICE_BYTES) return new Uint8Array(await file.arrayBuffer());
  const bytes = new Uint8Array(file.size);
  for (let start = 0; start < file.size; start += SLICE_BYTES) {
    bytes.set(new Uint8Array(await file.slice(start, start + SLICE_BYTES).arrayBuffer()), start);
    await yieldToEventLoop();
  }
  return bytes;
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
