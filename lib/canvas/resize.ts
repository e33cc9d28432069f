/** Resizes and crops images. */
import { blank, type Pixels, type PixelSize } from "./pixels.ts";

/**
 * Resizes an image to an exact size: averages when shrinking, interpolates when enlarging. Returns the image itself if
 * it has that size.
 */
export function resize(pixels: Pixels, size: PixelSize): Pixels {
  if (pixels.width === size.width && pixels.height === size.height) return pixels;
  return crop(pixels, { x: 0, y: 0, width: pixels.width, height: pixels.height }, size);
}

/**
 * Resizes an image in its own proportions so that it fills a size, and crops what exceeds it. Returns the image itself
 * if it has that size.
 */
export function cover(pixels: Pixels, size: PixelSize): Pixels {
  const scale = Math.max(size.width / pixels.width, size.height / pixels.height);
  const width = Math.min(pixels.width, size.width / scale), height = Math.min(pixels.height, size.height / scale);
  if (scale === 1 && width === pixels.width && height === pixels.height) return pixels;
  return crop(pixels, { x: (pixels.width - width) / 2, y: (pixels.height - height) / 2, width, height }, size);
}

function crop(pixels: Pixels, { x, y, width, height }: PixelSize & { x: number; y: number }, size: PixelSize): Pixels {
  const across = weigh({ from: x, length: width, limit: pixels.width, to: size.width });
  const down = weigh({ from: y, length: height, limit: pixels.height, to: size.height });
  const out = blank(size);
  const line = new Float32Array(pixels.width * 4);
  let to = 0;
  for (const { from: row, shares } of down) {
    line.fill(0);
    for (let i = 0; i < shares.length; i++) {
      const start = (row + i) * line.length, share = shares[i] as number;
      for (let at = 0; at < line.length; at++) {
        line[at] = (line[at] as number) + (pixels.data[start + at] as number) * share;
      }
    }
    for (const { from: column, shares } of across) {
      for (let channel = 0; channel < 4; channel++, to++) {
        let sum = 0.5;
        for (let i = 0; i < shares.length; i++) {
          sum += (line[(column + i) * 4 + channel] as number) * (shares[i] as number);
        }
        out.data[to] = sum;
      }
    }
  }
  return out;
}

/**
 * Returns the source pixels of each of `to` target pixels, as the index of the first and the share of each. They are
 * `length` pixels after `from`; `limit` is the end of the line.
 */
function weigh(
  { from, length, limit, to }: { from: number; length: number; limit: number; to: number },
): { from: number; shares: Float32Array }[] {
  const scale = length / to, reach = Math.max(1, scale);
  return Array.from({ length: to }, (_, i) => {
    const center = from + (i + 0.5) * scale - 0.5;
    const first = Math.max(0, Math.ceil(center - reach)), end = Math.min(limit, Math.floor(center + reach) + 1);
    const weights = Array.from({ length: end - first }, (_, k) => 1 - Math.abs(first + k - center) / reach);
    const sum = weights.reduce((sum, weight) => sum + weight, 0);
    return { from: first, shares: Float32Array.from(weights, (weight) => weight / sum) };
  });
}
