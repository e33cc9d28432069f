/** Paints an image from a prompt. The same prompt, size and index always give the same image. */
import type { Pixels, PixelSize } from "./pixels.ts";
import { compose } from "./compose.ts";
import { fill, rectangle } from "./path.ts";
import { smooth } from "./random.ts";
import { resize } from "./resize.ts";
import { eachPixel, lay, type Layer, paintLayers } from "./surface.ts";
import { layOut, letter } from "./text.ts";

/**
 * Paints an image. `index` distinguishes several images of one request. With `step`, 0 (the coarsest) to 2, it is a
 * preview: of the full size but with fewer details.
 */
export function paint(
  { prompt, size, index, step }: { prompt: string; size: PixelSize; index: number; step?: number },
): Pixels {
  if (step !== undefined) return resize(paint({ prompt, size: previewSize(size, step), index }), size);
  return paintLayers(size, [...compose(prompt, { ...size, index }), ...caption(prompt, size)]);
}

/** Returns the size in which a preview is painted before it is enlarged. */
export function previewSize({ width, height }: PixelSize, step: number): PixelSize {
  const coarse = 24 / 2 ** step;
  return { width: Math.ceil(width / coarse), height: Math.ceil(height / coarse) };
}

/**
 * Draws a caption in the lower part of an image, on a darkened background. `inset` is its margin, as a share of the
 * image's shorter side. Empty if the font has no character of the text.
 */
export function caption(text: string, { width, height }: PixelSize, inset = 0.06): Layer[] {
  const unit = Math.min(width, height), isWide = width >= height;
  const margin = unit * inset;
  const lines = width > height * 1.2 ? 3 : 5;
  const block = layOut(text, { width: width - 2 * margin, lines, largest: unit * 0.056, smallest: unit * 0.025 });
  if (block === undefined) return [];
  const top = height - margin - block.height + block.size * 0.3;
  const left = isWide ? margin : width / 2;
  const rule = { width: unit * 0.09, height: Math.max(1, unit * 0.0045) };
  const ruleLeft = isWide ? left + block.size * 0.1 : left - rule.width / 2;
  return [
    scrim(top - block.size * 3.2),
    fill(rectangle(ruleLeft, top - block.size * 0.95, rule), [1, 0.96, 0.88], 0.85),
    letter(block, [left, top], { center: !isWide }),
  ];
}

/** Darkens the image from `top` down, more and more. */
function scrim(top: number): Layer {
  return (band) => {
    eachPixel(band, { top }, (_x, y, at) => {
      lay(band.data, at, [0.02, 0.02, 0.05], smooth(top, band.height, y) * 0.62);
    });
  };
}
