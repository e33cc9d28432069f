/**
 * The surface that layers paint on. An image is painted in bands of rows, all layers of one band before the next band:
 * a band fits into the processor's cache, and memory does not grow with the number of layers.
 */
import type { Pixels, PixelSize } from "./pixels.ts";
import type { Rgb } from "./color.ts";
import { lattice } from "./random.ts";

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
export function paintLayers(
  { width, height }: PixelSize,
  layers: readonly Layer[],
  { grain: amount = GRAIN }: { grain?: number } = {},
): Pixels {
  const data = new Uint8Array(width * height * 4);
  const floats = new Float32Array(width * BAND_ROWS * 3);
  const grain = new Float32Array(TILE * TILE);
  for (let i = 0; i < grain.length; i++) grain[i] = (lattice(i, 7, 99) - 0.5) * amount + 0.5;
  for (let top = 0; top < height; top += BAND_ROWS) {
    const bottom = Math.min(height, top + BAND_ROWS);
    const band: Band = { width, height, top, bottom, data: floats };
    floats.fill(0);
    for (const layer of layers) layer(band);
    let from = 0;
    for (let y = top; y < bottom; y++) {
      const line = (y % TILE) * TILE;
      let to = y * width * 4;
      for (let x = 0; x < width; x++, from += 3, to += 4) {
        const speck = grain[line + x % TILE] as number;
        data[to] = toByte((floats[from] as number) * 255 + speck);
        data[to + 1] = toByte((floats[from + 1] as number) * 255 + speck);
        data[to + 2] = toByte((floats[from + 2] as number) * 255 + speck);
        data[to + 3] = 255;
      }
    }
  }
  return { width, height, data };
}

function toByte(value: number): number {
  return value <= 0 ? 0 : value >= 255 ? 255 : value | 0;
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
