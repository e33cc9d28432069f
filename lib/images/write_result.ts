/** The whole answer to a request for images. */
import type { JsonObject } from "../json/json.ts";
import { imageObject, members } from "./json_chunks.ts";
import type { FinishedImage } from "./image_usage.ts";
import type { ImageUsage } from "./image_pricing.ts";
import type { ImageRequest } from "./types.ts";

/** What a request says of its uploads. */
type CountedUploads = Pick<ImageRequest, "kind"> & { images: { length: number } };

/** Images, and what there is to say about them. */
export interface ImageResult {
  request: Pick<ImageRequest, "model" | "requestedSize" | "quality"> & CountedUploads;
  /** Unix seconds. */
  created: number;
  images: readonly FinishedImage[];
  usage: ImageUsage;
}

/** The answer's JSON, piece by piece. */
export function* writeResult({ request, created, images, usage }: ImageResult): Generator<string> {
  yield `{"created":${created},"data":[`;
  for (const [place, { index, base64 }] of images.entries()) {
    if (place > 0) yield ",";
    yield* imageObject({}, base64, { index });
  }
  const rest: JsonObject = {
    model: request.model,
    size: request.requestedSize,
    quality: request.quality,
    usage: writeUsage(usage, request),
    ...numInputImages(request),
  };
  yield `]${members(rest, ",", "")}}`;
}

/** The numbers that are billed. Uploaded images count where they have a price and the upstream reports them. */
export function writeUsage({ input, inputImages, output }: ImageUsage, request: CountedUploads): JsonObject {
  return {
    input_tokens: input + inputImages,
    input_tokens_details: { text_tokens: input, ...(inputImages > 0 && { image_tokens: inputImages }) },
    output_tokens: output,
    total_tokens: input + inputImages + output,
    ...numInputImages(request),
  };
}

/** How many images were edited. The interface can be read to have it beside the usage or within: it is in both places. */
export function numInputImages({ kind, images }: CountedUploads): JsonObject {
  return kind === "edit" ? { num_input_images: images.length } : {};
}
