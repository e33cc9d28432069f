/**
 * The surface that layers paint on. An image is painted in bands of rows, all layers of one band before the next band:
 * a band fits into the processor's cache, and memory does not grow with the number of layers.
 */
import { blank, type Pixels, type PixelSize } from "./pixels.ts";
import type { Rgb } from "./color.ts";
import { clamp, lattice } from "./random.ts";

/** Some rows of an image: red, green and blue of each pixel, 0 to 1. */
export interface Band {
  width: number;
  /** Height of the whole image. */
  height: number;
  /** First row of the band. */
  top: number;
  /** The row after the last. */
  bottom: number;
  data: Float32Array;
}

/** Paints a layer's part of a band over the layers before it. */
export type Layer = (band: Band) => void;

const BAND_ROWS = 48;
/** Side of the tile of noise, in pixels. */
const TILE = 128;
/** Amplitude of the noise in 8-bit steps: enough to dither gradients. */
const GRAIN = 1.3;

/** Paints layers, first to last. The result is opaque. `grain` is the amplitude of the noise, in 8-bit steps. */
export function paintLayers({ width, height }: PixelSize, layers: readonly Layer[], grain = GRAIN): Pixels {
  const pixels = blank({ width, height }, 255);
  const data = new Float32Array(width * BAND_ROWS * 3);
  const specks = Float32Array.from({ length: TILE * TILE }, (_, i) => (lattice(i, 7, 99) - 0.5) * grain + 0.5);
  for (let top = 0; top < height; top += BAND_ROWS) {
    const band: Band = { width, height, top, bottom: Math.min(height, top + BAND_ROWS), data };
    data.fill(0);
    for (const layer of layers) layer(band);
    eachPixel(band, {}, (x, y, from) => {
      const speck = specks[y % TILE * TILE + x % TILE] as number, to = (y * width + x) * 4;
      for (let channel = 0; channel < 3; channel++) {
        pixels.data[to + channel] = clamp((data[from + channel] as number) * 255 + speck, 255);
      }
    });
  }
  return pixels;
}

/** A part of an image. Edges that are left out are those of the image. */
export interface Box {
  left?: number;
  right?: number;
  top?: number;
  bottom?: number;
}

/** Calls `paint` for each pixel of a band within a box, with the offset of the pixel in the band's data. */
export function eachPixel(
  band: Band,
  { left = 0, right = band.width, top = 0, bottom = band.height }: Box,
  paint: (x: number, y: number, at: number) => void,
): void {
  const from = Math.max(0, Math.floor(left)), to = Math.min(band.width, Math.ceil(right));
  eachRow(band, [top, bottom], (y, row) => {
    for (let x = from; x < to; x++) paint(x, y, row + x * 3);
  });
}

/** Calls `paint` for each row of a band between two y coordinates, with the offset of the row in the band's data. */
export function eachRow(
  { width, top, bottom }: Band,
  [from, to]: readonly [number, number],
  paint: (y: number, row: number) => void,
): void {
  const end = Math.min(bottom, Math.ceil(to));
  for (let y = Math.max(top, Math.floor(from)); y < end; y++) paint(y, (y - top) * width * 3);
}

/** Blends a colour over the pixel at offset `at`. */
export function lay(data: Float32Array, at: number, color: Rgb, alpha: number): void {
  const red = data[at] as number, green = data[at + 1] as number, blue = data[at + 2] as number;
  data[at] = red + (color[0] - red) * alpha;
  data[at + 1] = green + (color[1] - green) * alpha;
  data[at + 2] = blue + (color[2] - blue) * alpha;
}

/** Adds light to the pixel at offset `at`, less to bright pixels. */
export function shine(data: Float32Array, at: number, color: Rgb, amount: number): void {
  const red = data[at] as number, green = data[at + 1] as number, blue = data[at + 2] as number;
  data[at] = red + (1 - red) * color[0] * amount;
  data[at + 1] = green + (1 - green) * color[1] * amount;
  data[at + 2] = blue + (1 - blue) * color[2] * amount;
}
