/** What pictures cost: tokens by the official formula, always at the high tier, whatever an upstream reports. */
import { NO_TOKENS } from "../store/days.ts";
import type { BilledTokens } from "../store/ledger.ts";
import { isValidSize } from "./size.ts";
import type { Size } from "./types.ts";

/** Tokens along the longer side at the high tier, which every quality is charged at. */
const HIGH_TIER = 96;

/** What a request is billed. These are the numbers the client sees, too. */
export interface ImageUsage {
  /** o200k tokens of the prompt. Pictures that were uploaded count nothing. */
  input: number;
  /** Tokens of the pictures delivered. */
  output: number;
}

/** Tokens of one picture of this size, which is valid. All numbers on the way are whole and below 2^53. */
export function outputTokens({ width, height }: Size): number {
  const shorter = Math.min(width, height);
  const longer = Math.max(width, height);
  // Half is rounded up.
  const short = Math.floor((2 * HIGH_TIER * shorter + longer) / (2 * longer));
  return Math.ceil(HIGH_TIER * short * (2_000_000 + width * height) / 4_000_000);
}

/**
 * Tokens of a picture as it came: those of its actual size, but never more than were asked for, as nobody pays for what an
 * upstream makes differently. A size outside the rules has no price of its own: it is charged as asked for.
 * @param actual absent where it cannot be read
 */
export function deliveredTokens(actual: Size | undefined, asked: Size): number {
  const most = outputTokens(asked);
  return actual === undefined || !isValidSize(actual) ? most : Math.min(most, outputTokens(actual));
}

/** The same by price class. */
export function billedTokens({ input, output }: ImageUsage): BilledTokens {
  return { ...NO_TOKENS, prompt: input, completion: output };
}

/** The most that a request can be billed: all its pictures, at the size asked for. */
export function mostUsage({ n, size }: { n: number; size: Size }, promptTokens: number): ImageUsage {
  return { input: promptTokens, output: n * outputTokens(size) };
}
