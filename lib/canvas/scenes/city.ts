/** A skyline by the water. */
import { mix, type Rgb } from "../color.ts";
import { mist } from "../layers.ts";
import { fill, type Point, rectangle } from "../path.ts";
import { between, clamp, lattice, pick } from "../random.ts";
import type { Stage } from "../stage.ts";
import { eachPixel, lay, type Layer, shine } from "../surface.ts";
import { heavens } from "./heavens.ts";

interface Tower {
  /** Left edge. */
  x: number;
  width: number;
  /** Upper edge. */
  top: number;
  crown: "flat" | "step" | "spire" | "slope";
}

/** Three rows of towers with windows in the nearer ones, and their reflection in the water. */
export function city(stage: Stage): Layer[] {
  const { height, unit, seed, palette } = stage;
  const shore = height * 0.74;
  const { layers } = heavens(stage, { horizon: shore, height: 0.75 });
  for (let row = 0; row < 3; row++) {
    const near = row / 2;
    const color = mix(mix(palette.sky[2], palette.sky[1], 0.5), palette.near, 0.3 + 0.62 * near);
    for (const tower of towers(stage, shore, near)) {
      layers.push(...build(stage, tower, { shore, color, near, seed: seed + row * 977 }));
    }
    if (row === 2) continue;
    const veil = { color: mix(palette.sky[2], palette.light, 0.3), alpha: 0.55, seed: seed + row };
    layers.push(mist({ top: shore - unit * 0.34, bottom: shore + unit * 0.04, ...veil }));
  }
  return [...layers, mirror(stage, shore)];
}

/** Places a row of towers, higher around a random middle. `near` is 0 for the farthest row and 1 for the nearest. */
function towers({ width, unit, random }: Stage, shore: number, near: number): Tower[] {
  const list: Tower[] = [];
  const middle = width * between(random, 0.3, 0.7);
  let x = -unit * 0.05;
  while (x < width) {
    const towerWidth = unit * between(random, 0.05, 0.11) * (0.75 + 0.45 * near);
    const bulge = Math.exp(-(((x - middle) / (width * 0.3)) ** 2));
    const towerHeight = unit * (between(random, 0.1, 0.26) + bulge * between(random, 0.1, 0.42)) * (1.15 - 0.25 * near);
    const crown = pick<Tower["crown"]>(random, ["flat", "flat", "step", "spire", "slope"]);
    list.push({ x, width: towerWidth, top: shore - towerHeight, crown });
    x += towerWidth + unit * (random() < 0.25 ? between(random, 0.005, 0.05) : 0.003);
  }
  return list;
}

function build(
  { unit, palette }: Stage,
  { x, width, top, crown }: Tower,
  { shore, color, near, seed }: { shore: number; color: Rgb; near: number; seed: number },
): Layer[] {
  const start: Point = [x, top], end: Point = [x + width * 0.4, shore];
  const wall = { from: mix(color, palette.light, 0.12), to: mix(color, palette.sky[2], 0.22), start, end };
  const block = (left: number, down: number, blockWidth: number, blockHeight: number) =>
    rectangle(x + width * left, top + down, { width: blockWidth, height: blockHeight });
  const layers: Layer[] = [
    fill(block(0, 0, width, shore - top), wall),
    fill(block(0.72, 0, width * 0.28, shore - top), mix(color, [0, 0, 0], 0.28), 0.6),
  ];
  if (crown === "step") layers.push(fill(block(0.2, -width * 0.35, width * 0.6, width * 0.36), color));
  if (crown === "slope") layers.push(fill([[x, top + 1], [x + width, top + 1], [x + width, top - width * 0.5]], color));
  if (crown === "spire") {
    layers.push(fill([[x + width * 0.36, top], [x + width * 0.5, top - width * 1.1], [x + width * 0.64, top]], color));
    layers.push(fill(block(0.485, -width * 1.7, width * 0.03 + 1, width), color));
  }
  if (near > 0) layers.push(windows({ x, width, top, bottom: shore }, { unit, palette, near, seed }));
  return layers;
}

/** Shares of lit windows by mood; in other moods it is `DAY_LIT_SHARE`. */
const LIT_SHARES: Readonly<Partial<Record<Stage["palette"]["mood"], number>>> = { night: 0.55, sunset: 0.4 };
const DAY_LIT_SHARE = 0.2;

/** Draws a grid of windows; at night more of them are lit. */
function windows(
  { x, width, top, bottom }: { x: number; width: number; top: number; bottom: number },
  { unit, palette, near, seed }: Pick<Stage, "unit" | "palette" | "seed"> & { near: number },
): Layer {
  const cell = unit * (0.0095 + 0.0045 * near);
  const columns = Math.max(2, Math.floor(width / cell) - 1);
  const margin = (width - columns * cell) / 2;
  const share = LIT_SHARES[palette.mood] ?? DAY_LIT_SHARE;
  const warm: Rgb = [1, 0.84, 0.48], cold: Rgb = [0.75, 0.9, 1];
  const dark = mix(palette.near, [0, 0, 0], 0.4);
  const box = { left: x + margin, right: x + width - margin, top: top + cell, bottom: bottom - cell };
  return (band) => {
    eachPixel(band, box, (at, y, to) => {
      const u = (at - x - margin) / cell, v = (y - top) / cell;
      const column = Math.floor(u), line = Math.floor(v);
      if (u - column < 0.18 || u - column > 0.78 || v - line < 0.3 || v - line > 0.82) return;
      const chance = lattice(column + Math.floor(x), line, seed);
      const isLit = chance < share * (0.4 + 1.2 * lattice(Math.floor(x), line, seed + 1));
      if (isLit) lay(band.data, to, chance * 7 % 1 < 0.2 ? cold : warm, 0.55 + 0.4 * near);
      else lay(band.data, to, dark, 0.3);
    });
  };
}

/** Mirrors the image above the shore, with ripples. Copies the rows to mirror while their bands are painted. */
function mirror({ width, height, unit, palette, seed }: Stage, shore: number): Layer {
  const top = Math.floor(shore);
  const depth = Math.min(top, height - top);
  // The rows to mirror, at half the resolution.
  const columns = Math.ceil(width / 2), rows = Math.ceil(depth / 2) + 1;
  const copy = new Float32Array(columns * rows * 3);
  const deep = mix(palette.sky[0], palette.near, 0.6);
  return (band) => {
    const { data } = band;
    eachPixel(band, { top: top - depth, bottom: top }, (x, y, at) => {
      const line = top - 1 - y;
      if (line % 2 !== 0 || x % 2 !== 0) return;
      const to = (line / 2 * columns + x / 2) * 3;
      for (let channel = 0; channel < 3; channel++) copy[to + channel] = data[at + channel] ?? 0;
    });
    eachPixel(band, { top }, (x, y, at) => {
      const down = y - top, share = down / Math.max(1, height - top);
      const ripple = lattice(Math.floor(y / (1 + unit * 0.0035)), Math.floor(x / (unit * 0.09)), seed) - 0.5;
      const column = clamp(Math.round(x / 2 + ripple * unit * 0.012 * (0.2 + share)), columns - 1);
      const row = clamp(Math.round(down / 2 * 1.15 + ripple * unit * 0.02), rows - 1);
      const [red = 0, green = 0, blue = 0] = copy.subarray((row * columns + column) * 3);
      lay(data, at, mix([red, green, blue], deep, 0.3 + 0.5 * share), 1);
      if (down < unit * 0.004) shine(data, at, palette.light, 0.25);
    });
  };
}
