/** Checks image sizes, and finds the nearest valid size for an invalid one. */
import { grouped } from "../text.ts";
import { GatewayError } from "../errors.ts";
import type { Size } from "./types.ts";

/** Width and height are multiples of this. */
const STEP = 16;

/** Longest side, in pixels. */
const MAX_SIDE = 3840;

/** Largest aspect ratio. */
const MAX_RATIO = 3;

/** Minimum number of pixels of an image. */
const MIN_PIXELS = 655_360;
/** Maximum number of pixels of an image. */
const MAX_PIXELS = 8_294_400;

/** Size for `auto` without an uploaded image. */
export const DEFAULT_SIZE: Readonly<Size> = { width: 1536, height: 1024 };

/** Lists the rules that a size violates, each as the end of a sentence; empty for a valid size. */
export function brokenRules({ width, height }: Size): string[] {
  const broken: string[] = [];
  for (const [name, side] of [["width", width], ["height", height]] as const) {
    if (side % STEP !== 0) broken.push(`${name} must be a multiple of ${STEP} (${side} is not)`);
  }
  const longest = Math.max(width, height);
  const shortest = Math.min(width, height);
  if (longest > MAX_SIDE) broken.push(`the longest side must be at most ${MAX_SIDE} (it is ${longest})`);
  if (longest > MAX_RATIO * shortest) broken.push(`the aspect ratio must be between 1:${MAX_RATIO} and ${MAX_RATIO}:1`);
  const pixels = width * height;
  if (pixels < MIN_PIXELS || pixels > MAX_PIXELS) {
    broken.push(
      `width times height must be from ${grouped(MIN_PIXELS)} to ${grouped(MAX_PIXELS)} pixels (it is ${
        grouped(pixels)
      })`,
    );
  }
  return broken;
}

/** Returns whether a size is valid. */
export function isValidSize(size: Size): boolean {
  return brokenRules(size).length === 0;
}

/**
 * Returns the valid size nearest to a size of at least 1x1, by the sum of squared differences in width and height. Of
 * equally near sizes, the one with the most pixels is returned, then the widest.
 */
export function nearestSize(size: Size): Size {
  return nearest(size, { width: 1, height: 1 });
}

/**
 * Returns the valid size for an uploaded image of at least 1x1. The size is scaled so that its aspect ratio changes as
 * little as possible, then rounded. A valid size is returned unchanged.
 */
export function fittingSize(size: Size): Size {
  if (isValidSize(size)) return { width: size.width, height: size.height };
  const ideal = scaleIntoRules(size);
  return nearest(ideal, ideal);
}

/** Finds the nearest valid size. @param unit differences in width and height are measured in multiples of it */
function nearest({ width, height }: Size, unit: Size): Size {
  let nearest: Size = { ...DEFAULT_SIZE };
  let leastDistance = Infinity;
  // Descending, so that the widest of equally near sizes is found first.
  for (let wide = MAX_SIDE; wide >= STEP; wide -= STEP) {
    const lowest = Math.ceil(Math.max(wide / MAX_RATIO, MIN_PIXELS / wide) / STEP) * STEP;
    const highest = Math.floor(Math.min(wide * MAX_RATIO, MAX_SIDE, MAX_PIXELS / wide) / STEP) * STEP;
    if (lowest > highest) continue;
    // Halves are rounded up, to more pixels.
    const high = Math.min(highest, Math.max(lowest, Math.floor(height / STEP + 1 / 2) * STEP));
    const distance = ((wide - width) / unit.width) ** 2 + ((high - height) / unit.height) ** 2;
    const hasMore = wide * high > nearest.width * nearest.height;
    if (distance < leastDistance || (distance === leastDistance && hasMore)) {
      leastDistance = distance;
      nearest = { width: wide, height: high };
    }
  }
  return nearest;
}

/** Returns the size nearest in aspect ratio, then in area, that satisfies all rules except the multiples of `STEP`. */
function scaleIntoRules({ width, height }: Size): Size {
  const ratio = Math.min(MAX_RATIO, Math.max(1 / MAX_RATIO, width / height));
  const pixels = Math.min(MAX_PIXELS, Math.max(MIN_PIXELS, width * height));
  const scaled = { width: Math.sqrt(pixels * ratio), height: Math.sqrt(pixels / ratio) };
  const shrink = Math.min(1, MAX_SIDE / Math.max(scaled.width, scaled.height));
  return { width: scaled.width * shrink, height: scaled.height * shrink };
}

/**
 * Reads the parameter `size`.
 * @returns the size, or `undefined` for `auto`
 * @throws {GatewayError} `invalid` with every broken rule and the nearest valid size
 */
export function readSize(text: string): Size | undefined {
  if (text === "auto") return undefined;
  const [, width, height] = /^([1-9]\d{0,5})x([1-9]\d{0,5})$/.exec(text) ?? [];
  if (width === undefined || height === undefined) {
    throw invalidSize('Invalid value for size: expected "auto" or "<width>x<height>", such as "1024x1024"');
  }
  const size = { width: Number(width), height: Number(height) };
  const broken = brokenRules(size);
  if (broken.length === 0) return size;
  throw invalidSize(
    `Invalid value for size: ${text} is not possible: ${broken.join("; ")}. ` +
      `The nearest valid size is ${sizeText(nearestSize(size))}`,
  );
}

/** Formats a size: `1536x1024`. */
export function sizeText({ width, height }: Size): string {
  return `${width}x${height}`;
}

function invalidSize(message: string): GatewayError {
  return new GatewayError("invalid", message, { param: "size", code: "invalid_size" });
}
