/** What a request for images is billed: tokens by the official formula, at the high tier, and nothing that is not delivered. */
import { deliveredTokens, outputTokens } from "../billing/image_tokens.ts";
import { NO_TOKENS } from "../store/days.ts";
import type { BilledExtra, BilledTokens } from "../store/ledger.ts";
import type { ImageRequest, Size } from "./types.ts";

/** What a request is billed. These are the numbers the client sees, too. */
export interface ImageUsage {
  /** o200k tokens of the prompt. */
  input: number;
  /** Tokens of uploaded images: those that an upstream reports, where the model's row has a price for them; else 0. */
  inputImages: number;
  /** Tokens of the images delivered. */
  output: number;
}

/** Name of the price of uploaded images, as in `pricing`. */
const INPUT_IMAGE = "input_image";

/**
 * Most tokens that are set aside for one uploaded image. Of OpenAI's models, those that look at it most closely count less
 * than 7,000.
 */
const MOST_INPUT_IMAGE_TOKENS = 8_192;

/** Nothing at all. */
export const NO_USAGE: Readonly<ImageUsage> = Object.freeze({ input: 0, inputImages: 0, output: 0 });

/** Tokens of an image as it came: those of its own size. One whose size cannot be read costs what was asked for. */
export function tokensOfImage(actual: Size | undefined, asked: Size): number {
  return actual === undefined ? outputTokens(asked) : deliveredTokens(actual);
}

/** Usage by price class; tokens of uploaded images are billed beside these. */
export function billedTokens({ input, output }: Pick<ImageUsage, "input" | "output">): BilledTokens {
  return { ...NO_TOKENS, prompt: input, completion: output };
}

/** What is billed beside the classes of tokens: uploaded images at the price of the model's row. */
export function billedExtras(
  { inputImages }: Pick<ImageUsage, "inputImages">,
  price: string | undefined,
): BilledExtra[] {
  return inputImages === 0 || price === undefined ? [] : [{ item: INPUT_IMAGE, count: inputImages, price }];
}

/**
 * The most that a request can be billed if its upstream makes the size that it is asked for. Where uploaded images have a
 * price, a host that makes one image per request looks at all of them for each.
 */
export function mostUsage(
  { n, size, images, mask }: Pick<ImageRequest, "n" | "size" | "images" | "mask">,
  { promptTokens, chargesInputImages }: { promptTokens: number; chargesInputImages: boolean },
): ImageUsage {
  const files = images.length + (mask === undefined ? 0 : 1);
  return {
    input: promptTokens,
    inputImages: chargesInputImages ? n * files * MOST_INPUT_IMAGE_TOKENS : 0,
    output: n * outputTokens(size),
  };
}
