/** Tokens of generated images by the official formula, always at the high tier, whatever an upstream reports. */

/** Width and height in pixels. */
interface Sides {
  width: number;
  height: number;
}

/** Tokens along the longer side at the high tier. Every quality is charged at it. */
const HIGH_TIER = 96;

/** The most expensive size that may be requested: the most pixels, as a square. */
const DEAREST: Readonly<Sides> = { width: 2880, height: 2880 };

/** Tokens of one image of a valid requested size. All intermediate numbers are integers below 2^53. */
export function outputTokens({ width, height }: Sides): number {
  const shorter = Math.min(width, height);
  const longer = Math.max(width, height);
  // Rounds halves up.
  const short = Math.floor((2 * HIGH_TIER * shorter + longer) / (2 * longer));
  return Math.ceil(HIGH_TIER * short * (2_000_000 + width * height) / 4_000_000);
}

/**
 * Tokens of a delivered image of any size. The size is what its header claims, so the result is capped at the most
 * expensive requestable size.
 */
export function deliveredTokens(size: Sides): number {
  return Math.min(outputTokens(size), outputTokens(DEAREST));
}

/** Reads `1536x1024`; absent for any other text. */
export function readSizeText(text: string): Sides | undefined {
  const [, width, height] = /^([1-9]\d{0,9})x([1-9]\d{0,9})$/.exec(text) ?? [];
  return width === undefined || height === undefined ? undefined : { width: Number(width), height: Number(height) };
}
