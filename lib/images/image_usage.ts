/** Counts the delivered images of a request and their usage, and keeps the first failure. */
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

/** Maximum number of tokens that an upstream can plausibly report. Larger numbers count as 0. */
const MAX_REPORTED_TOKENS = 1_000_000_000;

/** Counts images as they arrive. A failed image costs nothing. */
export class ImageUsageCounter {
  readonly #request: ImageRequest;
  readonly #options: ImageCountOptions;
  /** Sizes of received images by index. */
  readonly #sizes = new Map<number, string>();
  /** Tokens and sizes of images by the index of their latest preview. */
  readonly #previews = new Map<number, { output: number; size: string }>();
  #usage: ImageUsage = NO_USAGE;
  #failure: GatewayError | undefined;

  constructor(request: ImageRequest, options: ImageCountOptions) {
    this.#request = request;
    this.#options = options;
  }

  /** Number of delivered images. */
  get count(): number {
    return this.#sizes.size;
  }

  /** The bill so far. It is zero without an image. */
  get bill(): ImageBill {
    return { usage: this.#usage, sizes: inOrder(this.#sizes) };
  }

  /**
   * The bill if the client disconnects now. A preview shows almost all of an image, so it costs as much as the image.
   */
  get billWithPreviews(): ImageBill {
    const previews = [...this.#previews].filter(([index]) => this.isMissing(index));
    if (previews.length === 0) return this.bill;
    const { input, inputImages, output } = this.#usage;
    return {
      usage: {
        input: this.count === 0 ? this.#options.promptTokens : input,
        inputImages,
        output: previews.reduce((sum, [, preview]) => sum + preview.output, output),
      },
      sizes: inOrder([...this.#sizes, ...previews.map(([index, { size }]): [number, string] => [index, size])]),
    };
  }

  /** The reason why there is no image. If the upstream ended without an image or an error, that is the failure. */
  get failure(): GatewayError {
    return this.#failure ?? new GatewayError("upstream", "The upstream ended without an image", { final: true });
  }

  /** Returns true if the image with this index is still missing. */
  isMissing(index: number): boolean {
    return Number.isInteger(index) && index >= 0 && index < this.#request.n && !this.#sizes.has(index);
  }

  /** Records an image. @returns `undefined` if it was not requested or is a duplicate */
  deliver({ index, base64, inputImageTokens }: Extract<ImageEvent, { type: "image" }>): DeliveredImage | undefined {
    if (!this.isMissing(index) || base64 === "") return undefined;
    const { size, ...measured } = this.#measure(base64);
    const usage = {
      input: this.count === 0 ? this.#options.promptTokens : 0,
      inputImages: this.#options.chargesInputImages ? plausibleTokens(inputImageTokens) : 0,
      ...measured,
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

  /** Records a preview. @returns false if its image was not requested or is already delivered */
  preview({ index, base64 }: Extract<ImageEvent, { type: "partial" }>): boolean {
    if (!this.isMissing(index)) return false;
    if (base64 !== "") this.#previews.set(index, this.#measure(base64));
    return true;
  }

  #measure(base64: string): { size: string; output: number } {
    const actual = imageSizeBase64(base64);
    return {
      size: actual === undefined ? "unknown" : sizeText(actual),
      output: tokensOfImage(actual, this.#request.size),
    };
  }

  /** Records a failed image. The first reason is kept. */
  fail(error: GatewayError): void {
    this.#failure ??= error;
  }
}

function inOrder(sizes: Iterable<[index: number, size: string]>): string[] {
  return [...sizes].sort(([one], [other]) => one - other).map(([, size]) => size);
}

/** Returns a count that the upstream reported; 0 if it is implausible. */
function plausibleTokens(tokens: number | undefined): number {
  return tokens !== undefined && Number.isSafeInteger(tokens) && tokens >= 0 && tokens <= MAX_REPORTED_TOKENS
    ? tokens
    : 0;
}
