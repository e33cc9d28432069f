/** Mountains, deserts, meadows and forests. */
import { mix, oklch, type Rgb, tintsIn } from "../color.ts";
import { disc, glow, land, mist, ridgeLine, sky, water } from "../layers.ts";
import { fill, type Point, rectangle, stroke } from "../path.ts";
import { between, pick, type Random } from "../random.ts";
import { Sketch } from "../sketch.ts";
import { names, type Stage } from "../stage.ts";
import type { Layer } from "../surface.ts";
import { heavens } from "./heavens.ts";

/** Mountain ranges behind one another, each paler than the one before it, with a wood and perhaps a lake in front. */
export function mountains(stage: Stage): Layer[] {
  const { width, height, unit, random, seed, palette } = stage;
  const horizon = height * 0.62;
  const { layers, light, side } = heavens(stage, { horizon, height: 0.7 });
  const ranges = 4;
  const hasLake = names(stage, "lake", "river", "water", "reflection", "fjord") || random() < 0.4;
  for (let i = 0; i < ranges; i++) {
    const near = (i + 1) / ranges, base = horizon + unit * 0.12 * i + unit * 0.02;
    const color = mix(palette.sky[2], palette.near, 0.25 + 0.7 * near);
    const ridge = { base, rise: unit * (0.56 - 0.1 * i), scale: unit * (0.5 - 0.05 * i), sharp: i < 2 ? 1 : 0.5 };
    const shade = mix(mix(palette.sky[1], palette.sky[0], 0.4), [0.9, 0.93, 1], 0.45);
    const snow = { line: base - unit * (0.24 - 0.05 * i), lit: mix([1, 1, 1], palette.light, 0.5), shade };
    const lit = mix(color, palette.lit, 0.85 - 0.25 * near), haze = mix(palette.sky[2], color, 0.35 * near);
    const style = { color, lit, haze, depth: unit * 0.4, light: side, relief: 0.95 - 0.3 * near, seed: seed + i };
    const heights = ridgeLine(width, { ...ridge, seed: seed + i * 57 });
    layers.push(land(heights, i < 2 ? { ...style, snow } : style));
    if (i === ranges - 1) continue;
    const veil = { color: mix(palette.sky[2], palette.light, 0.3), alpha: 0.5, seed: seed + i * 7 };
    layers.push(mist({ top: base - unit * 0.14, bottom: base + unit * 0.1, ...veil }));
  }
  if (hasLake) {
    const shore = height * 0.74, deep = mix(palette.near, palette.sky[0], 0.5);
    const colors = [mix(palette.sky[2], palette.near, 0.35), palette.sky[1], palette.sky[0]];
    const style = { light: light[0], color: palette.light, glitter: 0.7, seed: seed + 3, unit };
    layers.push(
      water({ horizon: shore, deep, colors, ...style }),
      mist({ top: shore - unit * 0.03, bottom: shore + unit * 0.03, color: palette.sky[2], alpha: 0.6, seed }),
    );
  }
  return [...layers, ...wood(stage, height * (hasLake ? 0.99 : 0.93), mix(palette.near, [0, 0, 0], 0.45))];
}

/** Firs along the lower edge, denser at the sides. */
function wood({ width, unit, random }: Stage, ground: number, color: Rgb): Layer[] {
  const layers = [fill(rectangle(0, ground - 1, { width, height: unit * 0.4 }), color)];
  for (let x = -unit * 0.05; x < width + unit * 0.05; x += unit * between(random, 0.012, 0.05)) {
    const fromMiddle = Math.abs(x / width - 0.5) * 2;
    const size = unit * 0.2 * (0.25 + 0.75 * fromMiddle * fromMiddle) * between(random, 0.6, 1.2);
    layers.push(...fir([x, ground + unit * between(random, 0, 0.04)], size, color));
  }
  return layers;
}

/** Draws a fir; the point is at its foot. */
function fir(at: Point, size: number, color: Rgb): Layer[] {
  const sketch = new Sketch(at, size);
  const side = Array.from({ length: 7 }, (_, i): Point[] => {
    const share = (i + 1) / 7, half = 0.012 + 0.19 * share, level = 0.95 * share - 1;
    return [[half, level], [half * 0.5, level - 0.012]];
  }).flat();
  const back = side.map(([x, y]): Point => [-x, y]).reverse();
  sketch.polygon([[0, -1], ...side, ...back].join(" "), color);
  sketch.box("-0.014,-0.08 0.028,0.12", color);
  return sketch.layers;
}

/** Dunes, half in the light and half in the shade, with cacti. */
export function desert(stage: Stage): Layer[] {
  const { width, height, unit, random, seed, palette } = stage;
  const horizon = height * 0.58;
  const { layers, side } = heavens(stage, { horizon, height: 0.6 });
  const sand = mix(palette.lit, palette.sky[2], 0.3);
  for (let i = 0; i < 5; i++) {
    const near = i / 4;
    const dune = { base: horizon + unit * (0.05 + 0.11 * i), rise: unit * (0.13 + 0.04 * i), octaves: 2 };
    const color = mix(mix(sand, palette.near, 0.3 + 0.3 * near), palette.sky[1], 0.2 * (1 - near));
    const lit = mix(sand, palette.light, 0.35), haze = mix(color, palette.near, 0.25);
    const heights = ridgeLine(width, { ...dune, scale: unit * (0.5 + 0.35 * near), seed: seed + i * 91 });
    layers.push(land(heights, { color, lit, haze, depth: unit * 0.45, light: side, relief: 0.9, seed: seed + i }));
  }
  const cactus = mix(palette.near, [0.02, 0.1, 0.06], 0.5);
  for (let i = 0; i < 3; i++) {
    const size = unit * between(random, 0.08, 0.17);
    layers.push(...cactusAt([width * between(random, 0.08, 0.92), height * (0.72 + 0.03 * i)], size, cactus));
  }
  return layers;
}

/** Draws a cactus; the point is at its foot. */
function cactusAt(at: Point, size: number, color: Rgb): Layer[] {
  const sketch = new Sketch(at, size);
  const roundTip = (end: string, radius: number) =>
    sketch.add(disc(sketch.point(end), { radius: size * radius, color }));
  sketch.line("0,0 0,-1", color, { width: [0.16] });
  roundTip("0,-1", 0.08);
  for (const [x, from, top] of [[-0.24, 0.38, 0.7], [0.24, 0.5, 0.86]] as const) {
    sketch.line(`0,${-from} ${x},${-from}`, color, { width: [0.11] });
    sketch.line(`${x},${0.055 - from} ${x},${-top}`, color, { width: [0.11] });
    roundTip(`${x},${-top}`, 0.055);
  }
  return sketch.layers;
}

/** Soft hills with groves, and flowers in front. */
export function meadow(stage: Stage): Layer[] {
  const { width, height, unit, random, seed, palette } = stage;
  const horizon = height * 0.56;
  const { layers, side } = heavens(stage, { horizon, height: 0.6 });
  const green = palette.mood === "night" ? oklch(0.36, 0.07, 150) : oklch(0.7, 0.13, 124);
  const grass = mix(palette.lit, green, tintsIn([...stage.words]).length > 0 ? 0.25 : 0.8);
  const leaf = mix(grass, mix(palette.near, [0.03, 0.12, 0.08], 0.6), 0.6);
  for (let i = 0; i < 4; i++) {
    const near = i / 3;
    const color = mix(mix(palette.sky[2], palette.near, 0.35 + 0.3 * near), grass, 0.55);
    const hill = { base: horizon + unit * (0.02 + 0.09 * i), rise: unit * (0.16 - 0.02 * i), octaves: 3 };
    const heights = ridgeLine(width, { ...hill, scale: unit * (0.9 - 0.1 * i), seed: seed + i * 31 });
    const lit = mix(grass, palette.light, 0.2), haze = mix(color, palette.near, 0.35);
    layers.push(land(heights, { color, lit, haze, depth: unit * 0.5, light: side, relief: 0.6, seed: seed + i }));
    if (i < 3) layers.push(...grove(stage, heights, { size: unit * (0.03 + 0.025 * i), color: leaf }));
  }
  for (let i = 0; i < 150; i++) {
    const near = (i / 150) ** 1.6;
    const at: Point = [random() * width, height * (0.78 + 0.24 * near)];
    layers.push(...flower(stage, at, unit * (0.006 + 0.028 * near) * between(random, 0.7, 1.2)));
  }
  return layers;
}

/** Draws groups of round trees along a line of hills. */
function grove(
  { width, random }: Stage,
  heights: Float32Array,
  { size, color }: { size: number; color: Rgb },
): Layer[] {
  const layers: Layer[] = [];
  const style = { color, dark: mix(color, [0, 0, 0], 0.28), soft: size * 0.05 };
  let x = random() * width * 0.2;
  while (x < width) {
    for (let trees = 1 + Math.floor(random() * 4); trees > 0; trees--) {
      const y = (heights[Math.min(width - 1, Math.floor(x))] ?? 0) - size * 0.4;
      layers.push(disc([x, y], { radius: size * between(random, 0.35, 0.6), ...style }));
      x += size * 0.45;
    }
    x += width * between(random, 0.06, 0.3);
  }
  return layers;
}

/** Draws a flower; the point is at its foot. */
function flower({ palette, random }: Stage, [x, y]: Point, size: number): Layer[] {
  const color = pick(random, palette.accents);
  const head = y - size * 3.2;
  const lean = between(random, -0.6, 0.6) * size;
  const stem: Point[] = [[x, y + size], [x + lean * 0.3, y - size], [x + lean, head]];
  const layers = [fill(stroke(stem, size * 0.22, size * 0.12), mix(palette.near, palette.lit, 0.35))];
  const petals = 5 + Math.floor(random() * 3);
  for (let i = 0; i < petals; i++) {
    const angle = i / petals * 2 * Math.PI;
    const at: Point = [x + lean + Math.cos(angle) * size * 0.62, head + Math.sin(angle) * size * 0.5];
    layers.push(disc(at, { radius: size * 0.42, color: mix(color, [1, 1, 1], i % 2 * 0.14) }));
  }
  const heart = mix(palette.light, [0.9, 0.6, 0.1], 0.5);
  return [...layers, disc([x + lean, head], { radius: size * 0.34, color: heart })];
}

/** Rows of trunks, paler in the distance, and shafts of light. */
export function forest(stage: Stage): Layer[] {
  const { width, height, unit, random, seed, palette } = stage;
  const ground = height * 0.8;
  const light: Point = [width * between(random, 0.3, 0.7), height * 0.3];
  const glowColor = mix(palette.light, palette.sky[2], 0.3);
  const layers: Layer[] = [
    sky([palette.sky[1], mix(palette.sky[2], palette.lit, 0.35), palette.sky[2]], ground),
    glow(light, { radius: unit * 1.1, color: glowColor, amount: 0.85 }),
  ];
  for (let row = 0; row < 5; row++) {
    const near = row / 4;
    const color = mix(mix(palette.sky[2], palette.near, 0.25 + 0.75 * near), [0, 0, 0], 0.3 * near);
    const foot = ground + unit * 0.05 * row;
    const floor = ridgeLine(width, { base: foot, rise: unit * 0.05, scale: unit * 0.5, seed: seed + row, octaves: 4 });
    const moss = { color: mix(color, palette.lit, 0.12), lit: mix(color, palette.lit, 0.5), haze: color };
    layers.push(land(floor, { ...moss, depth: unit * 0.25, light: 1, relief: 0.3, seed }));
    const gap = unit * (0.055 + 0.075 * near), thickness = unit * (0.008 + 0.034 * near);
    for (let x = -gap * random(); x < width + gap; x += gap * between(random, 0.5, 1.6)) {
      if (row > 2 && Math.abs(x - light[0]) < unit * 0.16) continue;
      layers.push(...trunk(random, { x, foot: foot + unit * 0.02, thickness, color, height }));
    }
    const veil = { color: glowColor, alpha: 0.42 * (1 - near), seed: seed + row * 3 };
    layers.push(mist({ top: foot - unit * 0.3, bottom: foot + unit * 0.05, ...veil }));
    if (row === 2) layers.push(...shafts(stage, light, glowColor));
  }
  return layers;
}

/** Draws a trunk with three branches. */
function trunk(
  random: Random,
  { x, foot, thickness, color, height }: { x: number; foot: number; thickness: number; color: Rgb; height: number },
): Layer[] {
  const lean = between(random, -0.02, 0.02) * height;
  const width = thickness * between(random, 0.6, 1.2);
  const stem: Point[] = [[x, foot], [x + lean * 0.5, foot - height * 0.45], [x + lean, -10]];
  const layers = [fill(stroke(stem, width * 1.35, width * 0.6), color)];
  for (let i = 0; i < 3; i++) {
    const y = foot - height * between(random, 0.3, 0.75);
    const side = random() < 0.5 ? -1 : 1;
    const reach = width * between(random, 3, 7);
    const tip: Point = [x + side * reach, y - reach * 0.9];
    const branch: Point[] = [[x + lean * 0.5, y], [x + side * reach * 0.5, y - reach * 0.35], tip];
    layers.push(fill(stroke(branch, width * 0.4, width * 0.06), color));
  }
  return layers;
}

/** Draws shafts of light that fan out from a point. */
function shafts({ height, unit, random }: Stage, [x, y]: Point, color: Rgb): Layer[] {
  return Array.from({ length: 6 }, (_, i) => {
    const lean = (i - 2.5) * unit * 0.17, half = unit * between(random, 0.015, 0.05), foot = height * 0.86;
    const outline: Point[] = [[x + lean * 0.2, y - unit * 0.5], [x + lean - half, foot], [x + lean + half, foot]];
    return fill(outline, color, between(random, 0.05, 0.14));
  });
}
