/** Reads the form of an edit into an `ImageRequest`. */
import { z } from "zod";
import { GatewayError } from "../errors.ts";
import type { Json, JsonObject } from "../json/mod.ts";
import { checkBody } from "../protocols/fields.ts";
import { type ImageDefaults, readShared, type SharedBody, sharedFields } from "./shared_fields.ts";
import { fittingSize, readSize } from "./size.ts";
import type { ImageRequest, InputImage, Size } from "./types.ts";
import { checkMask, readUpload, refuse } from "./read_upload.ts";

/** Most images of one edit. */
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

/**
 * Reads the form of an edit. Text fields are checked before any image.
 * @throws {GatewayError} `invalid`
 */
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
