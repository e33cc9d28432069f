/** The whole answer to a request for pictures. */
import type { JsonObject } from "../json.ts";
import { members, pictureObject } from "./pieces.ts";
import type { Picture } from "./tally.ts";
import type { ImageUsage } from "./tariff.ts";
import type { ImageRequest } from "./types.ts";

/** Pictures, and what there is to say about them. */
export interface ImageResult {
  request: Pick<ImageRequest, "kind" | "model" | "requestedSize" | "quality"> & { images: { length: number } };
  /** Unix seconds. */
  created: number;
  pictures: readonly Picture[];
  usage: ImageUsage;
}

/** The answer's JSON, piece by piece. */
export function* writeResult({ request, created, pictures, usage }: ImageResult): Generator<string> {
  yield `{"created":${created},"data":[`;
  for (const [place, { index, base64 }] of pictures.entries()) {
    if (place > 0) yield ",";
    yield* pictureObject({}, base64, { index });
  }
  const rest: JsonObject = {
    model: request.model,
    size: request.requestedSize,
    quality: request.quality,
    usage: writeUsage(usage),
    ...(request.kind === "edit" && { num_input_images: request.images.length }),
  };
  yield `]${members(rest, ",", "")}}`;
}

/** The numbers that are billed. Uploaded pictures are not counted, so all input is text. */
export function writeUsage({ input, output }: ImageUsage): JsonObject {
  return {
    input_tokens: input,
    input_tokens_details: { text_tokens: input },
    output_tokens: output,
    total_tokens: input + output,
  };
}
