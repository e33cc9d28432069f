/** Filters that change the pixels of an image in place. */
import { free, type Pixels } from "./pixels.ts";
import { luma, type Rgb } from "./color.ts";

/** Replaces the colour of each pixel. Channels are 0 to 255. */
function recolor(pixels: Pixels, change: (red: number, green: number, blue: number) => Rgb): void {
  const { data } = pixels;
  for (let at = 0; at < data.length; at += 4) {
    const color = change(data[at] as number, data[at + 1] as number, data[at + 2] as number);
    data[at] = clamp(color[0]);
    data[at + 1] = clamp(color[1]);
    data[at + 2] = clamp(color[2]);
  }
}

/** Limits a channel to 0 to 255; adding a half makes the array's truncation round. */
function clamp(value: number): number {
  return value <= 0 ? 0 : value >= 255 ? 255 : value + 0.5;
}

/** Filters by name. `unit` is the shorter side of the image. */
export const FILTERS = {
  gray(pixels: Pixels) {
    recolor(pixels, (...color) => {
      const gray = luma(...color);
      return [gray, gray, gray];
    });
  },
  sepia(pixels: Pixels) {
    recolor(pixels, (...color) => {
      const gray = luma(...color);
      return [gray * 1.07 + 16, gray * 0.9 + 8, gray * 0.68];
    });
  },
  invert: (pixels: Pixels) => recolor(pixels, (red, green, blue) => [255 - red, 255 - green, 255 - blue]),
  posterize(pixels: Pixels) {
    tone(pixels, { saturation: 1.4, contrast: 1.15 });
    const step = 255 / 4;
    const toStep = (value: number) => Math.round(value / step) * step;
    recolor(pixels, (red, green, blue) => [toStep(red), toStep(green), toStep(blue)]);
  },
  blur: (pixels: Pixels, unit: number) => blur(pixels, Math.max(1, Math.round(unit * 0.012))),
  /** Unsharp masking: adds the difference to a blurred copy. */
  sharpen(pixels: Pixels, unit: number) {
    const blurred = { ...pixels, data: pixels.data.slice() };
    blur(blurred, Math.max(1, Math.round(unit * 0.0025)));
    for (let at = 0; at < pixels.data.length; at++) {
      if (at % 4 === 3) continue;
      const value = pixels.data[at] as number;
      pixels.data[at] = clamp(value + (value - (blurred.data[at] as number)) * 1.3);
    }
    free(blurred.data);
  },
  pixelate: (pixels: Pixels, unit: number) => pixelate(pixels, Math.max(2, Math.round(unit / 48))),
};

/** Tints the image by a share, 0 to 1, but keeps light areas light and dark areas dark. */
export function colorize(pixels: Pixels, color: Rgb, share: number): void {
  const colorLuma = luma(...color);
  recolor(pixels, (red, green, blue) => {
    const gray = luma(red, green, blue) / 255;
    // A pixel as light as the colour becomes the colour itself; darker pixels approach black, lighter ones white.
    const up = gray > colorLuma ? (gray - colorLuma) / Math.max(0.01, 1 - colorLuma) : 0;
    const down = gray < colorLuma ? gray / Math.max(0.01, colorLuma) : 1;
    const tinted = (value: number, target: number) =>
      value + (255 * (target * down + (1 - target) * up) - value) * share;
    return [tinted(red, color[0]), tinted(green, color[1]), tinted(blue, color[2])];
  });
}

/** Changes brightness (-1 to 1), contrast and saturation (1 changes nothing), and warmth (-1 to 1). */
export function tone(
  pixels: Pixels,
  { brightness = 0, contrast = 1, saturation = 1, warmth = 0 }: Partial<
    Record<"brightness" | "contrast" | "saturation" | "warmth", number>
  >,
): void {
  const curve = Float64Array.from({ length: 256 }, (_, value) => {
    const share = value / 255;
    const lifted = brightness >= 0 ? share ** (1 / (1 + brightness * 1.4)) : share ** (1 - brightness * 1.4);
    return ((lifted - 0.5) * contrast + 0.5) * 255;
  });
  recolor(pixels, (red, green, blue) => {
    const r = curve[red] as number, g = curve[green] as number, b = curve[blue] as number;
    const gray = luma(r, g, b);
    const toned = (value: number, warmShift: number) => gray + (value - gray) * saturation + warmShift * warmth;
    return [toned(r, 34), toned(g, 6), toned(b, -34)];
  });
}

/** Blurs the image: three box blurs per direction approximate a Gaussian. */
function blur(pixels: Pixels, radius: number): void {
  const { width, height } = pixels;
  for (let pass = 0; pass < 3; pass++) {
    blurLines(pixels.data, { count: height, length: width, step: 4, jump: width * 4, radius });
    blurLines(pixels.data, { count: width, length: height, step: width * 4, jump: 4, radius });
  }
}

/**
 * Box-blurs `count` lines of `length` pixels. In the data, `step` leads to the next pixel of a line, `jump` to the next
 * line.
 */
function blurLines(
  data: Uint8Array,
  { count, length, step, jump, radius }: { count: number; length: number; step: number; jump: number; radius: number },
): void {
  const reach = Math.min(radius, length - 1);
  const line = new Uint8Array(length);
  const scale = 1 / (2 * reach + 1);
  for (let index = 0; index < count; index++) {
    for (let channel = 0; channel < 4; channel++) {
      const start = index * jump + channel;
      for (let i = 0; i < length; i++) line[i] = data[start + i * step] as number;
      const first = line[0] as number, last = line[length - 1] as number;
      let sum = first * reach;
      for (let i = 0; i < reach; i++) sum += line[i] as number;
      for (let i = 0; i < length; i++) {
        sum += i + reach < length ? line[i + reach] as number : last;
        data[start + i * step] = sum * scale + 0.5;
        sum -= i - reach >= 0 ? line[i - reach] as number : first;
      }
    }
  }
}

/** Fills squares with their average colour. */
function pixelate({ width, height, data }: Pixels, side: number): void {
  for (let top = 0; top < height; top += side) {
    for (let left = 0; left < width; left += side) {
      const bottom = Math.min(height, top + side), right = Math.min(width, left + side);
      for (let channel = 0; channel < 4; channel++) {
        let sum = 0;
        for (let y = top; y < bottom; y++) {
          for (let x = left; x < right; x++) sum += data[(y * width + x) * 4 + channel] as number;
        }
        const mean = sum / ((bottom - top) * (right - left)) + 0.5;
        for (let y = top; y < bottom; y++) {
          for (let x = left; x < right; x++) data[(y * width + x) * 4 + channel] = mean;
        }
      }
    }
  }
}
