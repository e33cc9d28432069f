/** Filters that change the pixels of an image in place. */
import { free, type Pixels } from "./pixels.ts";
import { luma, type Rgb } from "./color.ts";
import { clamp } from "./random.ts";
import { resize } from "./resize.ts";

/** Replaces the colour of each pixel. Channels are 0 to 255. */
function recolor(pixels: Pixels, change: (red: number, green: number, blue: number) => Rgb): void {
  const { data } = pixels;
  for (let at = 0; at < data.length; at += 4) {
    const color = change(data[at] as number, data[at + 1] as number, data[at + 2] as number);
    data[at] = toByte(color[0]);
    data[at + 1] = toByte(color[1]);
    data[at + 2] = toByte(color[2]);
  }
}

/** Limits a channel to 0 to 255; adding a half makes the array's truncation round. */
function toByte(value: number): number {
  return clamp(value + 0.5, 255);
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
  blur: (pixels: Pixels, unit: number) => blur(pixels, Math.max(2, unit * 0.024)),
  /** Unsharp masking: adds the difference to a blurred copy. */
  sharpen(pixels: Pixels, unit: number) {
    const blurred = { ...pixels, data: pixels.data.slice() };
    blur(blurred, Math.max(2, unit * 0.005));
    for (let at = 0; at < pixels.data.length; at++) {
      const value = pixels.data[at] as number;
      if (at % 4 !== 3) pixels.data[at] = toByte(value + (value - (blurred.data[at] as number)) * 1.3);
    }
    free(blurred.data);
  },
  /** Fills squares with their average colour. */
  pixelate(pixels: Pixels, unit: number) {
    const { width, height, data } = pixels;
    const side = Math.max(2, Math.round(unit / 48));
    const small = shrink(pixels, side);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const from = (Math.floor(y / side) * small.width + Math.floor(x / side)) * 4;
        for (let channel = 0; channel < 3; channel++) {
          data[(y * width + x) * 4 + channel] = small.data[from + channel] as number;
        }
      }
    }
  },
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

/** Returns a copy whose sides are shorter by a factor. */
function shrink(pixels: Pixels, factor: number): Pixels {
  const { width, height } = pixels;
  return resize(pixels, { width: Math.ceil(width / factor), height: Math.ceil(height / factor) });
}

/** Blurs the image: shrinks it and enlarges it again, twice with different factors, so that no grid is visible. */
function blur(pixels: Pixels, factor: number): void {
  for (const share of [0.8, 0.55]) {
    const blurred = resize(shrink(pixels, factor * share), pixels);
    pixels.data.set(blurred.data);
    if (blurred !== pixels) free(blurred.data);
  }
}
