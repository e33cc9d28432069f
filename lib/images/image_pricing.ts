/** Computes the billed usage of image requests: OpenAI's token formula at high quality, for delivered images only. */
import { deliveredTokens, outputTokens } from "../billing/image_tokens.ts";
import { NO_TOKENS } from "../store/days.ts";
import type { BilledExtra, BilledTokens } from "../store/ledger.ts";
import type { ImageRequest, Size } from "./types.ts";

/** Billed usage of a request. The answer's `usage` has the same numbers. */
export interface ImageUsage {
  /** o200k tokens of the prompt. */
  input: number;
  /** Tokens of uploaded images as reported by the upstream; 0 if the model has no price for them. */
  inputImages: number;
  /** Tokens of the images delivered. */
  output: number;
}

/** Member of `pricing` for uploaded images. */
const INPUT_IMAGE = "input_image";

/** Tokens for which budget is held per uploaded image. OpenAI's models count fewer than 7,000. */
const MAX_INPUT_IMAGE_TOKENS = 8_192;

/** The usage of a request without images. */
export const NO_USAGE: Readonly<ImageUsage> = Object.freeze({ input: 0, inputImages: 0, output: 0 });

/** Returns the tokens of a delivered image by its actual size, or by the requested size if its header is unreadable. */
export function tokensOfImage(actual: Size | undefined, requested: Size): number {
  return actual === undefined ? outputTokens(requested) : deliveredTokens(actual);
}

/** Returns the usage by price class, without uploaded images. */
export function billedTokens({ input, output }: Pick<ImageUsage, "input" | "output">): BilledTokens {
  return { ...NO_TOKENS, prompt: input, completion: output };
}

/**
 * Returns the uploaded images as a billed item; none if they are free.
 * @param price price per token; undefined: free
 */
export function billedExtras(
  { inputImages }: Pick<ImageUsage, "inputImages">,
  price: string | undefined,
): BilledExtra[] {
  return inputImages === 0 || price === undefined ? [] : [{ item: INPUT_IMAGE, count: inputImages, price }];
}

/**
 * Returns the highest possible usage if the upstream delivers the requested size. A host that makes one image per call
 * reads the uploads for each image.
 */
export function maxUsageOf(
  { n, size, images, mask }: Pick<ImageRequest, "n" | "size" | "images" | "mask">,
  { promptTokens, chargesInputImages }: { promptTokens: number; chargesInputImages: boolean },
): ImageUsage {
  const files = images.length + (mask === undefined ? 0 : 1);
  return {
    input: promptTokens,
    inputImages: chargesInputImages ? n * files * MAX_INPUT_IMAGE_TOKENS : 0,
    output: n * outputTokens(size),
  };
}
