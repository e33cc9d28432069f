/** Paints an image from a prompt. Deterministic for the same prompt, size and index. */
import type { Pixels, PixelSize } from "./pixels.ts";
import { compose } from "./compose.ts";
import { eachRow } from "./layers.ts";
import { fill, rectangle } from "./path.ts";
import { resize } from "./resize.ts";
import { lay, type Layer, paintLayers } from "./surface.ts";
import { layOut, letter } from "./text.ts";

/** Scale factor of each preview: painted small, then enlarged. */
const COARSENESS = [24, 12, 6] as const;

/** Paints an image. A preview, `step` 0 to 2, has the full size but fewer details. */
export function paint(
  { prompt, size, index, step }: { prompt: string; size: PixelSize; index: number; step?: number },
): Pixels {
  if (step !== undefined) return resize(paint({ prompt, size: previewSize(size, step), index }), size);
  return paintLayers(size, [...compose(prompt, { ...size, index }), ...caption(prompt, size)]);
}

/** The size in which a preview is painted before it is enlarged. */
export function previewSize({ width, height }: PixelSize, step: number): PixelSize {
  const coarse = COARSENESS[Math.min(step, COARSENESS.length - 1)] ?? 6;
  return { width: Math.ceil(width / coarse), height: Math.ceil(height / coarse) };
}

/**
 * A caption in the lower part of an image, on a darkened background. The margin is a share of the image's shorter side.
 */
export function caption(text: string, { width, height }: PixelSize, inset = 0.06): Layer[] {
  const unit = Math.min(width, height);
  const margin = unit * inset;
  const block = layOut(text, {
    width: width - 2 * margin,
    lines: width > height * 1.2 ? 3 : 5,
    largest: unit * 0.056,
    smallest: unit * 0.025,
  });
  if (block === undefined) return [];
  const top = height - margin - block.height + block.size * 0.3;
  const isWide = width >= height;
  const left = isWide ? margin : width / 2;
  const rule = { width: unit * 0.09, height: Math.max(1, unit * 0.0045) };
  const ruleLeft = isWide ? left + block.size * 0.1 : left - rule.width / 2;
  return [
    scrim(top - block.size * 3.2, height),
    fill(rectangle(ruleLeft, top - block.size * 0.95, rule), [1, 0.96, 0.88], 0.85),
    letter(block, { at: [left, top], center: !isWide, color: [1, 0.98, 0.94], halo: 0.5 }),
  ];
}

function scrim(top: number, height: number): Layer {
  return (band) => {
    eachRow(band, [top, height], (y, row) => {
      const share = (y - top) / (height - top);
      const alpha = share * share * (3 - 2 * share) * 0.62;
      for (let x = 0; x < band.width; x++) lay(band.data, row + x * 3, [0.02, 0.02, 0.05], alpha);
    });
  };
}
