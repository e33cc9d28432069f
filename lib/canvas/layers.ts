/** Layers that cover the image or much of it: skies, light, clouds, land, water. Lengths are in pixels. */
import { mix, type Rgb } from "./color.ts";
import type { Point } from "./path.ts";
import type { PixelSize } from "./pixels.ts";
import { fractal, lattice, noise, type Random, smooth } from "./random.ts";
import { type Band, lay, type Layer, shine } from "./surface.ts";

/** A vertical gradient from `top` to `bottom`, constant above and below. */
export function sky(colors: readonly Rgb[], { top, bottom }: { top: number; bottom: number }): Layer {
  return (band) => {
    for (let y = band.top; y < band.bottom; y++) {
      const [red, green, blue] = along(colors, (y - top) / (bottom - top));
      let at = (y - band.top) * band.width * 3;
      for (let x = 0; x < band.width; x++, at += 3) {
        band.data[at] = red;
        band.data[at + 1] = green;
        band.data[at + 2] = blue;
      }
    }
  };
}

/** Returns the colour at a share, 0 to 1, of a gradient of evenly spaced colours. */
export function along(colors: readonly Rgb[], share: number): Rgb {
  const position = Math.min(1, Math.max(0, share)) * (colors.length - 1);
  const index = Math.min(colors.length - 2, Math.floor(position));
  const from = colors[index] ?? [0, 0, 0], to = colors[index + 1] ?? from;
  const t = position - index;
  return mix(from, to, t * t * (3 - 2 * t) * 0.5 + t * 0.5);
}

/** Light around a point that fades out at `radius`. `squeeze` below 1 makes it wider than high. */
export function glow(
  [cx, cy]: Point,
  { radius, color, amount, squeeze = 1 }: { radius: number; color: Rgb; amount: number; squeeze?: number },
): Layer {
  return (band) => {
    const reach = radius * squeeze;
    eachRow(band, [cy - reach, cy + reach], (y, row) => {
      const dy = (y - cy) / reach;
      const half = radius * Math.sqrt(Math.max(0, 1 - dy * dy));
      const from = Math.max(0, Math.floor(cx - half)), to = Math.min(band.width, Math.ceil(cx + half));
      for (let x = from; x < to; x++) {
        const dx = (x - cx) / radius;
        const strength = 1 - (dx * dx + dy * dy);
        if (strength > 0) shine(band.data, row + x * 3, color, strength * strength * strength * amount);
      }
    });
  };
}

/** A disc, or with `dark` (the colour of its shade) a ball lit from above left. `soft` is the width of its edge. */
export function disc(
  [cx, cy]: Point,
  { radius, color, alpha = 1, soft = 1.2, dark }: {
    radius: number;
    color: Rgb;
    alpha?: number;
    soft?: number;
    dark?: Rgb;
  },
): Layer {
  const light = [-0.5, -0.6] as const;
  return (band) => {
    const reach = radius + soft;
    eachRow(band, [cy - reach, cy + reach], (y, row) => {
      const from = Math.max(0, Math.floor(cx - reach)), to = Math.min(band.width, Math.ceil(cx + reach));
      for (let x = from; x < to; x++) {
        const dx = x + 0.5 - cx, dy = y + 0.5 - cy;
        const distance = Math.sqrt(dx * dx + dy * dy);
        const share = Math.min(1, Math.max(0, (radius - distance) / soft + 0.5)) * alpha;
        if (share <= 0) continue;
        const shade = () => smooth(0.1, 1.5, Math.hypot(dx / radius - light[0], dy / radius - light[1]));
        lay(band.data, row + x * 3, dark === undefined ? color : mix(color, dark, shade()), share);
      }
    });
  };
}

/**
 * Clouds of noise above `bottom`, brighter on the side of the light. `cover`, 0 to 1, is how much of the sky they
 * cover.
 */
export function clouds(
  { width, height }: PixelSize,
  { bottom, cover, lit, dark, light, seed }: Record<"bottom" | "cover" | "seed", number> & {
    lit: Rgb;
    dark: Rgb;
    light: Point;
  },
): Layer {
  const top = 0, stretch = 2.6;
  const columns = Math.min(720, Math.ceil(width / 2)), rows = Math.max(2, Math.ceil(columns * (bottom - top) / width));
  const unit = Math.min(width, height) * 0.42;
  const step = width / columns;
  const density = grid(columns, rows, (column, row) => {
    const x = column * step / unit, y = row * step / unit * stretch;
    const warp = noise(x * 1.7, y * 1.7, seed + 5) - 0.5;
    return fractal(x + warp * 0.6, y + warp * 0.4, { seed, octaves: 6 });
  });
  const threshold = 0.66 - cover * 0.34;
  const lightStep = Math.max(1, Math.round(columns / 90));
  return (band) => {
    eachRow(band, [top, bottom], (y, row) => {
      const v = (y - top) / step;
      const fade = smooth(0, 0.12, (y - top) / (bottom - top)) * smooth(0, 0.35, (bottom - y) / (bottom - top));
      if (fade <= 0) return;
      for (let x = 0; x < band.width; x++) {
        const u = x / step;
        const cloud = sample(density, u, v);
        const share = smooth(threshold, threshold + 0.2, cloud) * fade;
        if (share <= 0.004) continue;
        const dx = light[0] - x, dy = light[1] - y;
        const distance = Math.sqrt(dx * dx + dy * dy) + 1;
        const towardLight = sample(density, u + dx / distance * lightStep, v + dy / distance * lightStep);
        const bright = Math.min(1, Math.max(0, 0.55 + (cloud - towardLight) * 5 - (cloud - threshold) * 0.9));
        lay(band.data, row + x * 3, mix(dark, lit, bright), share * 0.92);
      }
    });
  };
}

/** Values on a grid, row by row. */
export interface Grid {
  columns: number;
  rows: number;
  values: Float32Array;
}

/** Creates a grid of computed values. */
export function grid(columns: number, rows: number, make: (column: number, row: number) => number): Grid {
  const values = new Float32Array(columns * rows);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) values[row * columns + column] = make(column, row);
  }
  return { columns, rows, values };
}

/** Returns the interpolated value at a column and row of a grid; beyond its edges, the value at the edge. */
export function sample({ columns, rows, values }: Grid, u: number, v: number): number {
  const x = Math.max(0, Math.min(columns - 1.001, u)), y = Math.max(0, Math.min(rows - 1.001, v));
  const column = x | 0, row = y | 0;
  const at = row * columns + column;
  const s = x - column, t = y - row;
  const top = (values[at] as number) * (1 - s) + (values[at + 1] as number) * s;
  const bottom = (values[at + columns] as number) * (1 - s) + (values[at + columns + 1] as number) * s;
  return top * (1 - t) + bottom * t;
}

/**
 * Returns the y coordinates of a line of hills, one per column. `base` is the y of the valleys, `rise` the height above
 * it, `scale` the width of a hill; `sharp` is 0 for soft hills and 1 for peaks.
 */
export function ridgeLine(
  width: number,
  { base, rise, scale, seed, sharp = 0, octaves = 7 }: Record<"base" | "rise" | "scale" | "seed", number> & {
    sharp?: number;
    octaves?: number;
  },
): Float32Array {
  const heights = new Float32Array(width);
  for (let x = 0; x < width; x++) {
    const soft = fractal(x / scale, 0.5, { seed, octaves });
    const peak = sharp === 0 ? 0 : peaks(x / scale, seed) * 0.9 + (soft - 0.4) * 0.45;
    heights[x] = base - rise * (soft * (1 - sharp) + Math.max(0, peak) * sharp);
  }
  return heights;
}

/** Returns the height of a row of peaks at a position; each peak has its own height and slopes. */
function peaks(x: number, seed: number): number {
  let highest = 0;
  for (let cell = Math.floor(x) - 2; cell <= Math.floor(x) + 2; cell++) {
    const distance = x - cell - lattice(cell, 1, seed) * 0.8;
    const steepness = 0.55 + 0.75 * lattice(cell, distance < 0 ? 2 : 3, seed);
    highest = Math.max(highest, 0.35 + 0.65 * lattice(cell, 4, seed) - Math.abs(distance) * steepness);
  }
  return highest;
}

/**
 * Land below a line of hills. Its sides that face `light` (-1: left, 1: right) have the colour `lit`; `relief`, 0 to 1,
 * is how much they differ. Downwards it fades into `haze` over a height of `depth`. Snow lies above `snow.line`.
 */
export function land(
  heights: Float32Array,
  { color, lit, haze, depth, light, relief, seed, snow }:
    & Record<"color" | "lit" | "haze", Rgb>
    & Record<"depth" | "light" | "relief" | "seed", number>
    & { snow?: { line: number; lit: Rgb; shade: Rgb } },
): Layer {
  const width = heights.length;
  const reach = Math.max(2, Math.round(depth / 7));
  const slopes = heights.map((_, x) =>
    ((heights[Math.min(width - 1, x + reach)] as number) - (heights[Math.max(0, x - reach)] as number)) / (2 * reach)
  );
  let highest = Infinity;
  for (const height of heights) highest = Math.min(highest, height);
  return (band) => {
    eachRow(band, [highest - 1, band.height], (y, row) => {
      for (let x = 0; x < width; x++) {
        const below = y + 0.5 - (heights[x] as number);
        if (below <= -0.5) continue;
        const share = Math.min(1, below + 0.5);
        const depthShare = Math.min(1, below / depth);
        let shade = color;
        if (relief > 0) {
          // The edge between light and shade meanders down from a peak, and spurs stand out on both sides.
          const wander = (noise(below / depth * 5, 0.5, seed + 1) - 0.5) * below * 1.5;
          const slope = slopes[Math.max(0, Math.min(width - 1, Math.round(x + wander)))] as number;
          const spur = noise((x + below * 0.5 * light) / depth * 5.5, below / depth * 4, seed) * 0.65 +
            noise((x - below * 0.4 * light) / depth * 14, below / depth * 11, seed + 2) * 0.35 - 0.5;
          const facing = smooth(-0.22, 0.22, slope * light * -0.55 + spur * 0.75) * relief;
          shade = mix(color, lit, facing * (1 - depthShare * 0.5));
          if (snow !== undefined) {
            const depthOfSnow = (snow.line - y) / depth + spur * 0.5;
            if (depthOfSnow > 0) shade = mix(shade, mix(snow.shade, snow.lit, facing), smooth(0, 0.06, depthOfSnow));
          }
        }
        lay(band.data, row + x * 3, mix(shade, haze, depthShare * depthShare * (3 - 2 * depthShare)), share);
      }
    });
  };
}

/** A patchy veil of one colour with soft upper and lower edges. */
export function mist(
  { top, bottom, color, alpha, seed, width }: Record<"top" | "bottom" | "alpha" | "seed" | "width", number> & {
    color: Rgb;
  },
): Layer {
  const span = bottom - top;
  const lines = grid(128, 8, (column, row) => fractal(column / 18, row / 4, { seed, octaves: 4 }));
  return (band) => {
    eachRow(band, [top, bottom], (y, row) => {
      const height = (y - top) / span;
      const fade = smooth(0, 0.6, height) * smooth(0, 0.4, 1 - height) * alpha;
      for (let x = 0; x < band.width; x++) {
        const density = sample(lines, x / width * 127, height * 7);
        lay(band.data, row + x * 3, color, fade * smooth(0.2, 0.75, density));
      }
    });
  };
}

/** Stars above `bottom`, thinning out towards it. */
export function stars(
  random: Random,
  { width, bottom, count, unit, color }: { width: number; bottom: number; count: number; unit: number; color: Rgb },
): Layer {
  const list = Array.from({ length: count }, () => {
    const bright = random() ** 6;
    return { x: random() * width, y: random() ** 1.4 * bottom, radius: unit * (0.0007 + bright * 0.0022), bright };
  });
  return (band) => {
    for (const { x, y, radius, bright } of list) {
      const reach = Math.max(0.8, radius);
      if (y + 3 < band.top || y - 3 > band.bottom) continue;
      disc([x, y], { radius: reach, color, alpha: 0.35 + bright * 0.65, soft: reach })(band);
      if (bright > 0.35) glow([x, y], { radius: reach * 7, color, amount: 0.35 })(band);
    }
  };
}

/**
 * Water from `horizon` down: the colours of the mirrored sky, waves, and the glitter of a light. `light` is the x of
 * the light, `color` its colour, `glitter` its strength.
 */
export function water(
  { horizon, deep, colors, light, color, glitter, seed, unit }:
    & { deep: Rgb; colors: readonly Rgb[]; color: Rgb }
    & Record<"horizon" | "light" | "glitter" | "seed" | "unit", number>,
): Layer {
  return (band) => {
    eachRow(band, [horizon, band.height], (y, row) => {
      const down = (y - horizon) / (band.height - horizon);
      const distance = Math.max(0.0015, (y - horizon) / unit);
      const base = mix(along(colors, down), deep, 0.2 + 0.55 * down);
      // Waves look flatter and denser in the distance.
      const vertical = Math.log(distance * 60 + 1) * 9;
      const horizontal = 3.5 / (distance + 0.06);
      const spread = unit * (0.035 + 0.3 * down);
      for (let x = 0; x < band.width; x++) {
        const u = (x - band.width / 2) / unit;
        const wave = noise(u * horizontal, vertical * 1.6, seed) * 0.6 +
          noise(u * horizontal * 2.3 + 9, vertical * 3.7, seed + 1) * 0.4;
        const at = row + x * 3;
        const tone = (wave - 0.5) * (0.12 + 0.3 * down);
        for (const channel of [0, 1, 2] as const) {
          band.data[at + channel] = base[channel] + tone * (0.4 + base[channel]);
        }
        const distanceToLight = (x - light) / spread;
        const square = distanceToLight * distanceToLight;
        const sparkle = smooth(0.5, 0.72, wave + Math.exp(-square) * 0.2) * Math.exp(-square * 0.8);
        shine(band.data, at, color, Math.min(1, sparkle * glitter));
      }
    });
  };
}

/** Darkens the corners. */
export function vignette({ width, height }: PixelSize, amount: number): Layer {
  return (band) =>
    eachPixel(band, (x, y, at) => {
      const dx = (x / width - 0.5) * 2, dy = (y / height - 0.5) * 2;
      scale(band.data, at, 1 - amount * smooth(0.5, 1.9, dx * dx + dy * dy));
    });
}

/** Faint broad brush strokes, which vary the tones of large areas. */
export function brush({ width, height }: PixelSize, amount: number, seed: number): Layer {
  const unit = Math.min(width, height);
  const columns = Math.ceil(width / unit * 300), rows = Math.ceil(height / unit * 300);
  const strokes = grid(columns, rows, (column, row) => fractal(column / 9, row / 2.2, { seed, octaves: 3 }) - 0.5);
  return (band) =>
    eachPixel(band, (x, y, at) => {
      const tone = sample(strokes, x / width * (columns - 1), y / height * (rows - 1));
      scale(band.data, at, 1 + tone * amount);
    });
}

/** Multiplies the pixel at offset `at` by a factor. */
function scale(data: Float32Array, at: number, factor: number): void {
  for (let channel = at; channel < at + 3; channel++) data[channel] = (data[channel] as number) * factor;
}

/** Calls `paint` for each pixel of a band, with the offset of the pixel in the band's data. */
export function eachPixel(band: Band, paint: (x: number, y: number, at: number) => void): void {
  for (let y = band.top, at = 0; y < band.bottom; y++) {
    for (let x = 0; x < band.width; x++, at += 3) paint(x, y, at);
  }
}

/** Calls `paint` for each row of the band between two y coordinates, with the offset of the row in the band's data. */
export function eachRow(
  { width, top, bottom }: Band,
  [from, to]: readonly [number, number],
  paint: (y: number, row: number) => void,
): void {
  const first = Math.max(top, Math.floor(from)), end = Math.min(bottom, Math.ceil(to));
  for (let y = first; y < end; y++) paint(y, (y - top) * width * 3);
}
