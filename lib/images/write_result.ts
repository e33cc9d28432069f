/** Writes the body of an answer that is not streamed. */
import type { JsonObject } from "../json/mod.ts";
import { imageObject, membersText } from "./json_chunks.ts";
import type { FinishedImage } from "./image_usage.ts";
import type { ImageUsage } from "./image_pricing.ts";
import type { ImageRequest } from "./types.ts";

/** The members of a request that describe its uploads. */
type CountedUploads = Pick<ImageRequest, "kind"> & { images: { length: number } };

/** Contents of a whole answer. */
export interface ImageResult {
  request: Pick<ImageRequest, "model" | "requestedSize" | "quality"> & CountedUploads;
  /** Unix time in seconds. */
  created: number;
  images: readonly FinishedImage[];
  usage: ImageUsage;
}

/** Writes the answer's JSON in chunks. */
export function* writeResult({ request, created, images, usage }: ImageResult): Generator<string> {
  yield `{"created":${created},"data":[`;
  for (const [position, { index, base64 }] of images.entries()) {
    if (position > 0) yield ",";
    yield* imageObject({}, base64, { index });
  }
  const rest: JsonObject = {
    model: request.model,
    size: request.requestedSize,
    quality: request.quality,
    usage: writeUsage(usage, request),
    ...numInputImages(request),
  };
  yield `]${membersText(rest, ",", "")}}`;
}

/**
 * Returns the billed usage. Uploaded images count if they have a price and the upstream reports them; else the usage does
 * not name them.
 */
export function writeUsage({ input, inputImages, output }: ImageUsage, request: CountedUploads): JsonObject {
  return {
    input_tokens: input + inputImages,
    input_tokens_details: { text_tokens: input, ...(inputImages > 0 && { image_tokens: inputImages }) },
    output_tokens: output,
    total_tokens: input + inputImages + output,
    ...numInputImages(request),
  };
}

/**
 * Returns the number of edited images as a member. Some clients read it beside `usage`, others in it, so it is in both.
 */
export function numInputImages({ kind, images }: CountedUploads): JsonObject {
  return kind === "edit" ? { num_input_images: images.length } : {};
}
