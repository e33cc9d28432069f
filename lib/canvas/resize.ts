/** Resizes and crops images. */
import { blank, type Pixels, type PixelSize } from "./pixels.ts";

/** Which source pixels make up each target pixel of a line, and in which shares. */
interface Weights {
  /** Index of the first source pixel of each target pixel. */
  from: Int32Array;
  /** Number of source pixels of each target pixel. */
  count: number;
  /** `count` shares for each target pixel. */
  shares: Float32Array;
}

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

/** Resizes a part of an image. */
function crop(pixels: Pixels, { x, y, width, height }: PixelSize & { x: number; y: number }, size: PixelSize): Pixels {
  const across = weigh({ from: x, length: width, limit: pixels.width, to: size.width });
  const down = weigh({ from: y, length: height, limit: pixels.height, to: size.height });
  const out = blank(size);
  const line = new Float32Array(pixels.width * 4);
  for (let row = 0; row < size.height; row++) {
    line.fill(0);
    for (let i = 0; i < down.count; i++) {
      const share = down.shares[row * down.count + i] as number;
      if (share === 0) continue;
      const start = Math.min(pixels.height - 1, (down.from[row] as number) + i) * pixels.width * 4;
      for (let at = 0; at < line.length; at++) {
        line[at] = (line[at] as number) + (pixels.data[start + at] as number) * share;
      }
    }
    for (let column = 0; column < size.width; column++) {
      let red = 0, green = 0, blue = 0, alpha = 0;
      for (let i = 0; i < across.count; i++) {
        const share = across.shares[column * across.count + i] as number;
        const at = Math.min(pixels.width - 1, (across.from[column] as number) + i) * 4;
        red += (line[at] as number) * share;
        green += (line[at + 1] as number) * share;
        blue += (line[at + 2] as number) * share;
        alpha += (line[at + 3] as number) * share;
      }
      const to = (row * size.width + column) * 4;
      out.data[to] = red + 0.5;
      out.data[to + 1] = green + 0.5;
      out.data[to + 2] = blue + 0.5;
      out.data[to + 3] = alpha + 0.5;
    }
  }
  return out;
}

/**
 * Computes the weights that map `length` source pixels after `from` to `to` target pixels; `limit` is the end of the
 * line.
 */
function weigh({ from, length, limit, to }: { from: number; length: number; limit: number; to: number }): Weights {
  const scale = length / to;
  const reach = Math.max(1, scale);
  const count = Math.ceil(reach * 2) + 1;
  const starts = new Int32Array(to), shares = new Float32Array(to * count);
  for (let i = 0; i < to; i++) {
    const center = from + (i + 0.5) * scale - 0.5;
    const start = Math.max(0, Math.min(limit - 1, Math.ceil(center - reach)));
    starts[i] = start;
    let sum = 0;
    for (let k = 0; k < count; k++) {
      const share = start + k < limit ? Math.max(0, 1 - Math.abs(start + k - center) / reach) : 0;
      shares[i * count + k] = share;
      sum += share;
    }
    for (let k = 0; k < count; k++) {
      shares[i * count + k] = sum > 0 ? (shares[i * count + k] as number) / sum : 1 / count;
    }
  }
  return { from: starts, count, shares };
}
