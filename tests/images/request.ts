/** Requests for images, as models get them. */
import type { ImageRequest } from "../../lib/images/types.ts";

/** A small request with these changes. */
export function imageRequest(change: Partial<ImageRequest> = {}): ImageRequest {
  return {
    kind: "generation",
    model: "acme/painter",
    prompt: "A heron",
    quality: "high",
    n: 1,
    requestedSize: "1024x1024",
    size: { width: 1024, height: 1024 },
    format: "png",
    background: "auto",
    stream: false,
    partialImages: 0,
    images: [],
    rest: {},
    ...change,
  };
}
