/** Layers that cover the image or much of it: skies, light, clouds, land, water. Lengths are in pixels. */
import { mix, type Rgb } from "./color.ts";
import type { Point } from "./path.ts";
import type { PixelSize } from "./pixels.ts";
import { clamp, fractal, lattice, noise, smooth } from "./random.ts";
import type { Stage } from "./stage.ts";
import { type Box, eachPixel, eachRow, lay, type Layer, shine } from "./surface.ts";

const BLACK: Rgb = [0, 0, 0];
/** Darker than black, so that a layer with a negative share brightens dark colours, too. */
const BELOW_BLACK: Rgb = [-0.4, -0.4, -0.4];

/** A vertical gradient from the upper edge of the image to `bottom`, constant below. */
export function sky(colors: readonly Rgb[], bottom: number): Layer {
  return (band) => {
    eachRow(band, [0, band.height], (y, row) => {
      const color = along(colors, y / bottom);
      for (let x = 0; x < band.width; x++) lay(band.data, row + x * 3, color, 1);
    });
  };
}

/** Returns the colour at a share, 0 to 1, of a gradient of evenly spaced colours. */
export function along(colors: readonly Rgb[], share: number): Rgb {
  const position = clamp(share) * (colors.length - 1);
  const index = Math.min(colors.length - 2, Math.floor(position));
  const from = colors[index] ?? [0, 0, 0], to = colors[index + 1] ?? from;
  const t = position - index;
  return mix(from, to, t * t * (3 - 2 * t) * 0.5 + t * 0.5);
}

/** Returns the box around an ellipse. */
export function around([x, y]: Point, rx: number, ry = rx): Box {
  return { left: x - rx, right: x + rx, top: y - ry, bottom: y + ry };
}

/** Light around a point that fades out at `radius`. `squeeze` below 1 makes it wider than high. */
export function glow(
  [cx, cy]: Point,
  { radius, color, amount, squeeze = 1 }: { radius: number; color: Rgb; amount: number; squeeze?: number },
): Layer {
  const reach = radius * squeeze;
  return (band) => {
    eachPixel(band, around([cx, cy], radius, reach), (x, y, at) => {
      const dx = (x - cx) / radius, dy = (y - cy) / reach;
      const strength = 1 - (dx * dx + dy * dy);
      if (strength > 0) shine(band.data, at, color, strength * strength * strength * amount);
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
  return (band) => {
    eachPixel(band, around([cx, cy], radius + soft), (x, y, at) => {
      const dx = x + 0.5 - cx, dy = y + 0.5 - cy;
      const share = clamp((radius - Math.sqrt(dx * dx + dy * dy)) / soft + 0.5) * alpha;
      if (share <= 0) return;
      const shade = () => smooth(0.1, 1.5, Math.hypot(dx / radius + 0.5, dy / radius + 0.6));
      lay(band.data, at, dark === undefined ? color : mix(color, dark, shade()), share);
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
  const columns = Math.min(720, Math.ceil(width / 2)), step = width / columns;
  const unit = Math.min(width, height) * 0.42;
  const density = grid(columns, Math.max(2, Math.ceil(bottom / step)), (column, row) => {
    const x = column * step / unit, y = row * step / unit * 2.6;
    const warp = noise(x * 1.7, y * 1.7, seed + 5) - 0.5;
    return fractal(x + warp * 0.6, y + warp * 0.4, { seed, octaves: 6 });
  });
  const threshold = 0.66 - cover * 0.34;
  const lightStep = Math.max(1, Math.round(columns / 90));
  return (band) => {
    eachRow(band, [0, bottom], (y, row) => {
      const v = y / step;
      const fade = smooth(0, 0.12, y / bottom) * smooth(0, 0.35, 1 - y / bottom);
      for (let x = 0; x < band.width; x++) {
        const u = x / step;
        const cloud = density(u, v);
        const share = smooth(threshold, threshold + 0.2, cloud) * fade;
        if (share <= 0.004) continue;
        const dx = light[0] - x, dy = light[1] - y;
        const distance = Math.sqrt(dx * dx + dy * dy) + 1;
        const towardLight = density(u + dx / distance * lightStep, v + dy / distance * lightStep);
        const bright = clamp(0.55 + (cloud - towardLight) * 5 - (cloud - threshold) * 0.9);
        lay(band.data, row + x * 3, mix(dark, lit, bright), share * 0.92);
      }
    });
  };
}

/**
 * Computes values on a grid. Returns a function that interpolates between them; beyond the edges, it returns the value
 * at the edge.
 */
export function grid(
  columns: number,
  rows: number,
  make: (column: number, row: number) => number,
): (u: number, v: number) => number {
  const values = new Float32Array(columns * rows);
  for (let at = 0; at < values.length; at++) values[at] = make(at % columns, Math.floor(at / columns));
  return (u, v) => {
    const x = clamp(u, columns - 1.001), y = clamp(v, rows - 1.001);
    const column = x | 0, row = y | 0;
    const at = row * columns + column;
    const s = x - column, t = y - row;
    const top = (values[at] as number) * (1 - s) + (values[at + 1] as number) * s;
    const bottom = (values[at + columns] as number) * (1 - s) + (values[at + columns + 1] as number) * s;
    return top * (1 - t) + bottom * t;
  };
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
  return Float32Array.from({ length: width }, (_, x) => {
    const soft = fractal(x / scale, 0.5, { seed, octaves });
    const peak = sharp === 0 ? 0 : peaks(x / scale, seed) * 0.9 + (soft - 0.4) * 0.45;
    return base - rise * (soft * (1 - sharp) + Math.max(0, peak) * sharp);
  });
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
  const heightAt = (x: number) => heights[clamp(x, width - 1)] as number;
  const slopes = heights.map((_, x) => (heightAt(x + reach) - heightAt(x - reach)) / (2 * reach));
  const highest = heights.reduce((highest, height) => Math.min(highest, height), Infinity);
  return (band) => {
    eachPixel(band, { top: highest - 1 }, (x, y, at) => {
      const below = y + 0.5 - (heights[x] as number);
      if (below <= -0.5) return;
      const depthShare = Math.min(1, below / depth);
      // The edge between light and shade meanders down from a peak, and spurs stand out on both sides.
      const wander = (noise(below / depth * 5, 0.5, seed + 1) - 0.5) * below * 1.5;
      const slope = slopes[clamp(Math.round(x + wander), width - 1)] as number;
      const spur = noise((x + below * 0.5 * light) / depth * 5.5, below / depth * 4, seed) * 0.65 +
        noise((x - below * 0.4 * light) / depth * 14, below / depth * 11, seed + 2) * 0.35 - 0.5;
      const facing = smooth(-0.22, 0.22, slope * light * -0.55 + spur * 0.75) * relief;
      let shade = mix(color, lit, facing * (1 - depthShare * 0.5));
      const depthOfSnow = snow === undefined ? 0 : (snow.line - y) / depth + spur * 0.5;
      if (snow !== undefined && depthOfSnow > 0) {
        shade = mix(shade, mix(snow.shade, snow.lit, facing), smooth(0, 0.06, depthOfSnow));
      }
      lay(band.data, at, mix(shade, haze, smooth(0, 1, depthShare)), Math.min(1, below + 0.5));
    });
  };
}

/** A patchy veil of one colour with soft upper and lower edges. */
export function mist(
  { top, bottom, color, alpha, seed }: Record<"top" | "bottom" | "alpha" | "seed", number> & { color: Rgb },
): Layer {
  const patches = grid(128, 8, (column, row) => fractal(column / 18, row / 4, { seed, octaves: 4 }));
  return (band) => {
    eachRow(band, [top, bottom], (y, row) => {
      const height = (y - top) / (bottom - top);
      const fade = smooth(0, 0.6, height) * smooth(0, 0.4, 1 - height) * alpha;
      for (let x = 0; x < band.width; x++) {
        lay(band.data, row + x * 3, color, fade * smooth(0.2, 0.75, patches(x / band.width * 127, height * 7)));
      }
    });
  };
}

/** Stars above `bottom`, thinning out towards it. */
export function stars(
  { random, width, unit }: Pick<Stage, "random" | "width" | "unit">,
  { bottom, count, color }: { bottom: number; count: number; color: Rgb },
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
        lay(band.data, at, base, 1);
        lay(band.data, at, BELOW_BLACK, -tone);
        const square = ((x - light) / spread) ** 2;
        const sparkle = smooth(0.5, 0.72, wave + Math.exp(-square) * 0.2) * Math.exp(-square * 0.8);
        shine(band.data, at, color, Math.min(1, sparkle * glitter));
      }
    });
  };
}

/** Darkens the corners. */
export function vignette({ width, height }: PixelSize, amount: number): Layer {
  return (band) => {
    eachPixel(band, {}, (x, y, at) => {
      const dx = (x / width - 0.5) * 2, dy = (y / height - 0.5) * 2;
      lay(band.data, at, BLACK, amount * smooth(0.5, 1.9, dx * dx + dy * dy));
    });
  };
}

/** Faint broad brush strokes, which vary the tones of large areas. */
export function brush({ width, height }: PixelSize, amount: number, seed: number): Layer {
  const unit = Math.min(width, height);
  const columns = Math.ceil(width / unit * 300), rows = Math.ceil(height / unit * 300);
  const strokes = grid(columns, rows, (column, row) => fractal(column / 9, row / 2.2, { seed, octaves: 3 }) - 0.5);
  return (band) => {
    eachPixel(band, {}, (x, y, at) => {
      lay(band.data, at, BLACK, -amount * strokes(x / width * (columns - 1), y / height * (rows - 1)));
    });
  };
}
