/**
 * Computes the tokens of generated images by the official formula, always at high quality, whatever an upstream
 * reports.
 */

/** Width and height in pixels. */
interface Sides {
  width: number;
  height: number;
}

/** Tokens along the longer side at high quality. Images of every quality are charged at this number. */
const TOKENS_OF_LONGER_SIDE = 96;

/** The most expensive size that may be requested: the largest square. */
const MOST_EXPENSIVE_SIZE: Readonly<Sides> = { width: 2880, height: 2880 };

/** Returns the tokens of one image of a valid requested size. All intermediate numbers are integers below 2^53. */
export function outputTokens({ width, height }: Sides): number {
  const shorter = Math.min(width, height);
  const longer = Math.max(width, height);
  // Rounded to the nearest integer, halves up.
  const tokensOfShorterSide = Math.floor((2 * TOKENS_OF_LONGER_SIDE * shorter + longer) / (2 * longer));
  return Math.ceil(TOKENS_OF_LONGER_SIDE * tokensOfShorterSide * (2_000_000 + width * height) / 4_000_000);
}

/**
 * Returns the tokens of a delivered image. Its header may claim any size, so the result is at most that of the most
 * expensive size that may be requested.
 */
export function deliveredTokens(size: Sides): number {
  return Math.min(outputTokens(size), outputTokens(MOST_EXPENSIVE_SIZE));
}

/** Reads a size such as `1536x1024`. Returns undefined for any other text. */
export function readSizeText(text: string): Sides | undefined {
  const [, width, height] = /^([1-9]\d{0,9})x([1-9]\d{0,9})$/.exec(text) ?? [];
  return width === undefined || height === undefined ? undefined : { width: Number(width), height: Number(height) };
}
