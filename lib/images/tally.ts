/** What came of a request so far: which pictures are there, what they cost, and what went wrong with the others. */
import { GatewayError } from "../errors.ts";
import { imageSizeBase64 } from "../metering/image_size.ts";
import { sizeText } from "./size.ts";
import { deliveredTokens, type ImageUsage } from "./tariff.ts";
import type { ImageEvent, ImageRequest } from "./types.ts";

/** A finished picture. */
export interface Picture {
  /** Its place among the pictures asked for. */
  index: number;
  base64: string;
}

/** What is known of a picture that has just come. */
export interface Delivered {
  picture: Picture;
  /** What it costs; the first of a request carries the prompt, so that all together are the bill. */
  usage: ImageUsage;
}

/** Counts pictures as they come. A failed one costs nothing. */
export class Tally {
  readonly #request: ImageRequest;
  readonly #promptTokens: number;
  readonly #seen = new Set<number>();
  #outputTokens = 0;
  #size: string;
  #failure: GatewayError | undefined;

  /** @param promptTokens o200k tokens of the prompt */
  constructor(request: ImageRequest, promptTokens: number) {
    this.#request = request;
    this.#promptTokens = promptTokens;
    this.#size = sizeText(request.size);
  }

  /** How many pictures have come. */
  get count(): number {
    return this.#seen.size;
  }

  /** The bill so far: nothing without a picture. */
  get usage(): ImageUsage {
    return this.count === 0 ? { input: 0, output: 0 } : { input: this.#promptTokens, output: this.#outputTokens };
  }

  /** Size of the first picture; until it has come, the size asked for. */
  get size(): string {
    return this.#size;
  }

  /** Why there is no picture. Upstreams that end without one and without a word are at fault themselves. */
  get failure(): GatewayError {
    return this.#failure ?? new GatewayError("upstream", "The upstream ended without a picture", { final: true });
  }

  /** Whether an index is that of a picture that is still missing. */
  isMissing(index: number): boolean {
    return Number.isInteger(index) && index >= 0 && index < this.#request.n && !this.#seen.has(index);
  }

  /** Takes note of a picture; `undefined` where nobody asked for it, or it was there already. */
  deliver({ index, base64 }: Extract<ImageEvent, { type: "image" }>): Delivered | undefined {
    if (!this.isMissing(index) || base64 === "") return undefined;
    const size = imageSizeBase64(base64);
    const output = deliveredTokens(size, this.#request.size);
    const isFirst = this.count === 0;
    if (isFirst && size !== undefined) this.#size = sizeText(size);
    this.#seen.add(index);
    this.#outputTokens += output;
    return { picture: { index, base64 }, usage: { input: isFirst ? this.#promptTokens : 0, output } };
  }

  /** Takes note of a picture that will not come. The first reason is kept. */
  fail(error: GatewayError): void {
    this.#failure ??= error;
  }
}
