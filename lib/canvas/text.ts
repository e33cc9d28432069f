/** Lays out text and draws it on an image. */
import { drawable, glyph } from "./font.ts";
import type { Point } from "./path.ts";
import { clamp, smooth } from "./random.ts";
import { eachPixel, lay, type Layer } from "./surface.ts";

/** Text laid out in lines. */
export interface Block {
  lines: string[];
  /** Height of a capital, in pixels. */
  size: number;
  /** Width of the longest line, and height of all lines, in pixels. */
  width: number;
  height: number;
}

/** Maximum number of characters that are laid out: more than fit into any image. */
const MAX_CHARS = 1000;
/** Height of a capital in the units of the font. */
const CAPITAL = 10;
/** Line height, in capital heights. */
const LEADING = 1.72;
/** Half the width of the pen, in the units of the font. */
const PEN = 0.66;
/** Width of the halo, in capital heights. */
const HALO = 0.45;
/** Number of steps from the largest to the smallest size that are tried. */
const SIZE_STEPS = 14;

/**
 * Lays a text out in the largest size at which it has at most `lines` lines of `width` pixels. If it does not fit at
 * the smallest size, it ends with an ellipsis. Returns `undefined` if the font has no character of the text.
 */
export function layOut(
  text: string,
  { width, lines, largest, smallest }: { width: number; lines: number; largest: number; smallest: number },
): Block | undefined {
  const words = drawable(text.slice(0, MAX_CHARS)).split(" ").filter((word) => word !== "");
  if (words.length === 0) return undefined;
  for (let step = 0;; step++) {
    const size = largest * (smallest / largest) ** (step / SIZE_STEPS);
    const lineWidth = width * CAPITAL / size;
    const wrapped = wrap(words, lineWidth);
    if (wrapped.length <= lines) return measure(wrapped, size);
    if (step === SIZE_STEPS) return measure(cut(wrapped, { lines, lineWidth }), size);
  }
}

function measure(lines: string[], size: number): Block {
  const width = Math.max(...lines.map(widthOf)) * size / CAPITAL;
  return { lines, size, width, height: (lines.length - 1) * size * LEADING + size * 1.3 };
}

/** Returns the width of a text in the units of the font. */
function widthOf(text: string): number {
  let width = 0;
  for (const letter of text) width += glyph(letter)?.width ?? 0;
  return width;
}

/** Breaks words into lines. A word that is too long for a line is split. */
function wrap(words: readonly string[], lineWidth: number): string[] {
  const pack = (parts: readonly string[], gap: string) => {
    const packed = [parts[0] ?? ""];
    for (const part of parts.slice(1)) {
      const longer = packed.at(-1) + gap + part;
      if (widthOf(longer) > lineWidth) packed.push(part);
      else packed[packed.length - 1] = longer;
    }
    return packed;
  };
  return pack(words.flatMap((word) => pack([...word], "")), " ");
}

/** Cuts a text to a number of lines and ends it with an ellipsis. */
function cut(wrapped: readonly string[], { lines, lineWidth }: { lines: number; lineWidth: number }): string[] {
  let last = wrapped[lines - 1] ?? "";
  while (last !== "" && widthOf(`${last}...`) > lineWidth) last = last.slice(0, -1);
  return [...wrapped.slice(0, lines - 1), `${last.trimEnd()}...`];
}

/**
 * Draws a block of text, with a dark halo that keeps it legible on any background.
 * @param at top left corner of the capitals in the first line; with `center`, the middle of their top
 */
export function letter(block: Block, at: Point, { center }: { center: boolean }): Layer {
  const unit = block.size / CAPITAL;
  const pen = Math.max(0.75, unit * PEN), reach = pen + block.size * HALO;
  const margin = Math.ceil(reach + block.size * 0.5);
  const left = Math.floor(at[0] - (center ? block.width / 2 : 0)) - margin;
  const top = Math.floor(at[1]) - margin;
  const columns = Math.ceil(block.width) + 2 * margin, rows = Math.ceil(block.height) + 2 * margin;
  // Distance of each pixel from the nearest stroke, at most `reach`.
  const distances = new Float32Array(columns * rows).fill(reach);
  for (const [index, text] of block.lines.entries()) {
    let x = margin + (center ? (block.width - widthOf(text) * unit) / 2 : 0);
    const base = margin + block.size + index * block.size * LEADING + (at[1] - Math.floor(at[1]));
    for (const character of text) {
      const { strokes, width } = glyph(character) ?? { strokes: [], width: 0 };
      for (const points of strokes) {
        const line = points.map(([px, py]): Point => [x + px * unit, base - py * unit]);
        trace(distances, { columns, rows, reach, line });
      }
      x += width * unit;
    }
  }
  return (band) => {
    eachPixel(band, { left, right: left + columns, top, bottom: top + rows }, (x, y, at) => {
      const distance = distances[(y - top) * columns + x - left] as number;
      if (distance >= reach) return;
      lay(band.data, at, [0.02, 0.02, 0.04], smooth(reach, pen, distance) * 0.5);
      lay(band.data, at, [1, 0.98, 0.94], clamp(pen + 0.5 - distance));
    });
  };
}

/** Lowers the distances of the pixels near a line. */
function trace(
  distances: Float32Array,
  { columns, rows, reach, line }: { columns: number; rows: number; reach: number; line: readonly Point[] },
): void {
  for (let i = 0; i + 1 < line.length; i++) {
    const [x0, y0] = line[i] as Point, [x1, y1] = line[i + 1] as Point;
    const dx = x1 - x0, dy = y1 - y0;
    const length = dx * dx + dy * dy || 1;
    const lowX = Math.max(0, Math.floor(Math.min(x0, x1) - reach));
    const highX = Math.min(columns - 1, Math.ceil(Math.max(x0, x1) + reach));
    const lowY = Math.max(0, Math.floor(Math.min(y0, y1) - reach));
    const highY = Math.min(rows - 1, Math.ceil(Math.max(y0, y1) + reach));
    for (let y = lowY; y <= highY; y++) {
      for (let x = lowX; x <= highX; x++) {
        const px = x + 0.5 - x0, py = y + 0.5 - y0;
        const t = clamp((px * dx + py * dy) / length);
        const ex = px - t * dx, ey = py - t * dy;
        const at = y * columns + x;
        distances[at] = Math.min(distances[at] as number, Math.sqrt(ex * ex + ey * ey));
      }
    }
  }
}
