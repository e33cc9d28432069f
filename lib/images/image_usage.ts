/** Counts delivered images, their cost, and the first failure. */
import { GatewayError } from "../errors.ts";
import { imageSizeBase64 } from "../billing/image_size.ts";
import { sizeText } from "./size.ts";
import { type ImageUsage, NO_USAGE, tokensOfImage } from "./image_pricing.ts";
import type { ImageEvent, ImageRequest } from "./types.ts";

/** A finished image. */
export interface FinishedImage {
  /** Index among the requested images. */
  index: number;
  base64: string;
}

/** A delivered image with its size and cost. */
export interface DeliveredImage {
  image: FinishedImage;
  /** Actual size, such as `1024x1024`; `unknown` if its header cannot be read. */
  size: string;
  /** Usage of this image. The first image includes the prompt, so that the sum is the bill. */
  usage: ImageUsage;
}

/** Usage and sizes of the delivered images. */
export interface ImageBill {
  usage: ImageUsage;
  /** Actual size of each image, in order of index. */
  sizes: readonly string[];
}

/** Options of a count. */
export interface ImageCountOptions {
  /** o200k tokens of the prompt. */
  promptTokens: number;
  /** True if the tokens that the upstream reports for uploaded images are billed. */
  chargesInputImages: boolean;
}

/** Largest plausible report of an upstream; larger numbers count as 0. */
const MOST_TOKENS = 1_000_000_000;

/** Counts images as they come. A failed one costs nothing. */
export class ImageUsageCounter {
  readonly #request: ImageRequest;
  readonly #options: ImageCountOptions;
  /** Sizes of received images by index. */
  readonly #sizes = new Map<number, string>();
  #usage: ImageUsage = NO_USAGE;
  #failure: GatewayError | undefined;

  constructor(request: ImageRequest, options: ImageCountOptions) {
    this.#request = request;
    this.#options = options;
  }

  get count(): number {
    return this.#sizes.size;
  }

  /** The bill so far; zero without an image. */
  get bill(): ImageBill {
    const sizes = [...this.#sizes].sort(([one], [other]) => one - other).map(([, size]) => size);
    return { usage: this.#usage, sizes };
  }

  /** The reason that there is no image. An upstream that ends without images or an error is itself at fault. */
  get failure(): GatewayError {
    return this.#failure ?? new GatewayError("upstream", "The upstream ended without an image", { final: true });
  }

  /** Returns true if the image with this index is still missing. */
  isMissing(index: number): boolean {
    return Number.isInteger(index) && index >= 0 && index < this.#request.n && !this.#sizes.has(index);
  }

  /** Records an image; `undefined` if it was not requested or is a duplicate. */
  deliver({ index, base64, inputImageTokens }: Extract<ImageEvent, { type: "image" }>): DeliveredImage | undefined {
    if (!this.isMissing(index) || base64 === "") return undefined;
    const actual = imageSizeBase64(base64);
    const size = actual === undefined ? "unknown" : sizeText(actual);
    const usage = {
      input: this.count === 0 ? this.#options.promptTokens : 0,
      inputImages: this.#options.chargesInputImages ? believed(inputImageTokens) : 0,
      output: tokensOfImage(actual, this.#request.size),
    };
    this.#sizes.set(index, size);
    const { input, inputImages, output } = this.#usage;
    this.#usage = {
      input: input + usage.input,
      inputImages: inputImages + usage.inputImages,
      output: output + usage.output,
    };
    return { image: { index, base64 }, size, usage };
  }

  /** Records a failed image. The first reason is kept. */
  fail(error: GatewayError): void {
    this.#failure ??= error;
  }
}

/** A count reported by the upstream; 0 if it is implausible. */
function believed(tokens: number | undefined): number {
  return tokens !== undefined && Number.isSafeInteger(tokens) && tokens >= 0 && tokens <= MOST_TOKENS ? tokens : 0;
}
