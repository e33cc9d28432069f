/** Reads the form of an edit into an `ImageRequest`. */
import { z } from "zod";
import { GatewayError } from "../errors.ts";
import type { Json, JsonObject } from "../json/mod.ts";
import { checkBody } from "../protocols/fields.ts";
import { type ImageDefaults, readShared, type SharedBody, sharedFields } from "./shared_fields.ts";
import { fittingSize, readSize, sizeText } from "./size.ts";
import type { ImageRequest, InputImage, Size } from "./types.ts";
import { imageSize } from "../billing/image_size.ts";
import { orientationOf } from "./orientation.ts";
import { yieldToEventLoop } from "../scheduler.ts";

/** Maximum number of images of one edit. */
const MAX_IMAGES = 16;

/** Text fields of `POST /v1/images/edits`, after numbers and booleans were parsed. Unknown fields are allowed. */
export const editSchema = z.looseObject({
  ...sharedFields,
  quality: z.enum(["low", "medium", "high"]).nullish()
    .describe("Required unless the operator has set a default. Does not affect the price"),
  input_fidelity: z.enum(["high", "low"]).nullish(),
});

const NUMBER_FIELDS: ReadonlySet<string> = new Set(["n", "output_compression", "partial_images"]);
const BOOLEAN_FIELDS: ReadonlySet<string> = new Set(["stream"]);

interface FormFields {
  texts: JsonObject;
  images: File[];
  mask: File | undefined;
}

/** Reads the form of an edit. Text fields are checked before any image. @throws {GatewayError} `invalid` */
export async function readEdit(form: FormData, defaults: ImageDefaults): Promise<ImageRequest> {
  const { texts, images: files, mask: maskFile } = readFields(form);
  checkBody(editSchema, texts);
  const fields = texts as unknown as SharedBody;
  const shared = readShared(fields, defaults);
  const requestedSize = fields.size ?? "auto";
  const size = readSize(requestedSize);
  if (files.length === 0) {
    throw new GatewayError("invalid", "Missing required parameter: image (a PNG, JPEG or WebP file)", {
      param: "image",
      code: "missing_required_parameter",
    });
  }
  if (files.length > MAX_IMAGES) {
    throw refuse("image", `expected at most ${MAX_IMAGES} images, not ${files.length}`);
  }
  const images: InputImage[] = [];
  for (const [index, file] of files.entries()) {
    images.push(await readUpload(file, files.length === 1 ? "image" : `image[${index}]`));
  }
  const mask = maskFile === undefined ? undefined : await readUpload(maskFile, "mask");
  const [first] = images;
  if (mask !== undefined && first !== undefined) checkMask(mask, first);
  return {
    kind: "edit",
    ...shared,
    requestedSize,
    size: size ?? sizeOfOriginal(first),
    images,
    ...(mask !== undefined && { mask }),
  };
}

/** Returns the size of the displayed image, or the most similar valid size. */
function sizeOfOriginal(image: InputImage | undefined): Size {
  if (image === undefined) throw new RangeError("Cannot use the size of the original: there is no image");
  return fittingSize(image);
}

function readFields(form: FormData): FormFields {
  const texts = new Map<string, Json>();
  const images: File[] = [];
  let mask: File | undefined;
  for (const [name, value] of form) {
    if (name === "image" || name === "image[]") images.push(fileOf(value, "image"));
    else if (name === "mask") {
      if (mask !== undefined) throw refuse("mask", "expected one file, it was sent twice");
      mask = fileOf(value, "mask");
    } else {
      if (texts.has(name)) throw refuse(name, "expected one value, the field was sent twice");
      texts.set(name, scalarOf(name, value));
    }
  }
  return { texts: Object.fromEntries(texts), images, mask };
}

function fileOf(value: FormDataEntryValue, field: string): File {
  if (value instanceof File) return value;
  throw refuse(field, "expected a file upload (PNG, JPEG or WebP), not text and not a URL");
}

/**
 * Returns a field's value as JSON. Text that is not of the expected type stays text, and the schema reports the error.
 */
function scalarOf(name: string, value: FormDataEntryValue): Json {
  if (value instanceof File) throw refuse(name, "expected text, not a file");
  if (NUMBER_FIELDS.has(name) && /^-?\d{1,9}(\.\d{1,9})?$/.test(value)) return Number(value);
  if (BOOLEAN_FIELDS.has(name) && /^(true|false)$/.test(value)) return value === "true";
  return value;
}

/** Maximum number of pixels of an upload. The limit protects the decoders. */
const MAX_PIXELS = 64_000_000;
/** Longest side of an upload, in pixels. The limit protects the decoders. */
const MAX_SIDE = 16_384;
/** Bytes of an upload that are copied in one turn of the event loop. */
const SLICE_BYTES = 4_194_304;

/**
 * Reads the header of an uploaded image. Pixels are not decoded. The content decides its type, not the file name.
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

/** Checks that a mask is a PNG of the image's size. @throws {GatewayError} `invalid` */
function checkMask(mask: InputImage, image: InputImage): void {
  if (mask.type !== "png") throw refuse("mask", "expected a PNG, whose transparent parts are to be edited");
  if (mask.width === image.width && mask.height === image.height) return;
  throw refuse("mask", `expected the size of the first image, ${sizeText(image)}, not ${sizeText(mask)}`);
}

/** Creates the error for an invalid image field. */
function refuse(field: string, why: string): GatewayError {
  return new GatewayError("invalid", `Invalid value for ${field}: ${why}`, { param: field });
}
