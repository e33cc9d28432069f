/** Images made of flat shapes: abstract compositions and portraits. */
import { mix, oklch, type Rgb, tintsIn } from "../color.ts";
import { disc, glow, sky } from "../layers.ts";
import { arc, curve, fill, type Point, stroke } from "../path.ts";
import { between, pick } from "../random.ts";
import { Sketch } from "../sketch.ts";
import { names, type Stage } from "../stage.ts";
import type { Layer } from "../surface.ts";

const WHITE: Rgb = [1, 1, 1], BLACK: Rgb = [0, 0, 0];

/** Overlapping discs, arcs, ribbons and lines. */
export function abstract(stage: Stage): Layer[] {
  const { width, height, unit, random, palette: { accents } } = stage;
  const ground = paper(stage);
  const layers: Layer[] = [
    sky([ground, mix(ground, accents[1], 0.14)], height),
    glow([width * 0.3, height * 0.25], { radius: unit, color: accents[1], amount: 0.3 }),
  ];
  const middle: Point = [width * between(random, 0.35, 0.65), height * between(random, 0.34, 0.5)];
  for (let i = 0; i < 4; i++) layers.push(ribbon(stage, accents[i] ?? accents[0]));
  const main = unit * between(random, 0.2, 0.28);
  const shadow = { radius: main, color: [0, 0, 0.05], alpha: 0.25, soft: unit * 0.06 } as const;
  layers.push(disc([middle[0] + unit * 0.02, middle[1] + unit * 0.03], shadow));
  layers.push(ball(accents[0], middle, main));
  for (let i = 0; i < 16; i++) {
    const distance = unit * between(random, 0.16, 0.55), angle = random() * 2 * Math.PI;
    const x = middle[0] + Math.cos(angle) * distance * width / unit * 0.8;
    const at: Point = [x, middle[1] + Math.sin(angle) * distance * 0.75];
    const radius = unit * between(random, 0.015, 0.11);
    const color = pick(random, accents);
    layers.push(ball(color, at, radius, between(random, 0.55, 0.92)));
    if (i % 4 === 0) layers.push(fill(stroke(arc(at, { rx: radius * 1.35 }), unit * 0.004), color, 0.9));
  }
  for (let i = 0; i < 3; i++) {
    const from = random(), to = from + between(random, 0.25, 0.6);
    const outline = stroke(arc(middle, { rx: main * (1.15 + 0.17 * i), from, to }), unit * 0.012, unit * 0.003);
    layers.push(fill(outline, accents[i + 1] ?? accents[0], 0.9));
  }
  for (let i = 0; i < 7; i++) {
    const x = width * between(random, 0.05, 0.95), y = height * between(random, 0.05, 0.7);
    const size = unit * between(random, 0.02, 0.06), turn = random();
    const triangle = arc([x, y], { rx: size, from: turn, to: turn + 2 / 3, steps: 2 });
    layers.push(fill(triangle, pick(random, accents), 0.85));
  }
  for (let i = 0; i < 5; i++) {
    const y = height * between(random, 0.1, 0.75);
    const lean = unit * between(random, -0.5, 0.5);
    layers.push(fill(stroke([[0, y], [width, y + lean]], unit * 0.0022), mix(ground, [0.05, 0.05, 0.1], 0.65), 0.5));
  }
  return layers;
}

function paper({ palette, random }: Stage): Rgb {
  if (palette.mood === "night") return mix(palette.sky[0], [0.04, 0.04, 0.08], 0.3);
  return random() < 0.6 ? mix([0.965, 0.94, 0.89], palette.sky[2], 0.35) : mix(palette.sky[0], palette.near, 0.45);
}

/** Draws a disc that looks lit from above left. */
function ball(color: Rgb, at: Point, radius: number, alpha?: number): Layer {
  const [x, y] = at;
  const start: Point = [x - radius * 0.7, y - radius * 0.8], end: Point = [x + radius * 0.7, y + radius * 0.9];
  const paint = { from: mix(color, WHITE, 0.28), to: mix(color, [0.05, 0, 0.15], 0.3), start, end };
  return fill(arc(at, { rx: radius }), paint, alpha);
}

/** Draws a wavy band across the image. */
function ribbon({ width, height, unit, random, palette }: Stage, color: Rgb): Layer {
  const y = height * between(random, 0.12, 0.72);
  const wave = Array.from({ length: 6 }, (_, i): Point => {
    return [width * (i / 5 * 1.2 - 0.1), y + unit * between(random, -0.22, 0.22)];
  });
  const outline = stroke(curve(wave), unit * between(random, 0.02, 0.07), unit * between(random, 0.06, 0.16));
  const end: Point = [width, height * 0.4];
  return fill(
    outline,
    { from: mix(color, WHITE, 0.15), to: mix(color, palette.sky[0], 0.45), start: [0, 0], end },
    0.62,
  );
}

/** A head and shoulders in areas of light and shade, in front of a halo. */
export function portrait(stage: Stage): Layer[] {
  const { width, height, unit, random, palette } = stage;
  const at: Point = [width / 2, height * 0.43], size = unit * 0.2;
  const sketch = new Sketch(at, size, { flip: random() < 0.5 });
  const [first, second, third] = palette.accents;
  const skin = oklch(between(random, 0.55, 0.84), 0.075, between(random, 48, 66));
  const shade = mix(skin, mix(palette.near, [0.25, 0.08, 0.12], 0.5), 0.5);
  const hair = tintsIn([...stage.words]).length > 0 ? mix(first, [0.08, 0.05, 0.05], 0.4) : mix(
    palette.near,
    pick<Rgb>(random, [[0.1, 0.06, 0.05], [0.5, 0.28, 0.1], [0.55, 0.16, 0.08], [0.85, 0.72, 0.45]]),
    0.75,
  );
  const halo = sketch.gradient(mix(palette.light, second, 0.25), mix(palette.sky[2], second, 0.5), "0,-1.6 0,1.4");
  const ground = mix(palette.sky[1], palette.near, 0.5);
  sketch.add(sky([palette.sky[0], palette.sky[1], ground], height), ...rays(stage, at));
  sketch.oval("0,-0.1 1.75,1.75", mix(second, palette.sky[2], 0.4), 0.9);
  sketch.oval("0,-0.1 1.52,1.52", halo);
  const isLong = names(stage, "woman", "girl", "queen", "lady", "mother", "princess") ||
    (!names(stage, "man", "boy", "king", "father", "prince") && random() < 0.5);
  if (isLong) {
    const longHair = "0,-1.3 0.85,-0.95 1.05,0 1,1.1 0.5,1.35 -0.5,1.35 -1,1.1 -1.05,0 -0.85,-0.95";
    sketch.blob(longHair, mix(hair, BLACK, 0.3));
  }
  const cloth = sketch.gradient(mix(first, WHITE, 0.08), mix(first, palette.near, 0.75), "-1.2,1.2 1.2,3.2");
  sketch.polygon("-0.3,0.7 0.3,0.7 0.36,1.55 -0.36,1.55", shade);
  sketch.blob("0,1.28 0.55,1.36 1.35,1.72 1.85,2.7 1.9,4.6 -1.9,4.6 -1.85,2.7 -1.35,1.72 -0.55,1.36", cloth);
  sketch.polygon("-0.42,1.32 0,2.15 0.42,1.32 0.2,1.2 -0.2,1.2", skin);
  sketch.polygon("-0.62,1.3 -0.42,1.28 0.02,2.2 -0.12,2.6", mix(first, WHITE, 0.4));
  sketch.polygon("0.62,1.3 0.42,1.28 -0.02,2.2 0.12,2.6", mix(first, [0, 0, 0.1], 0.35));
  sketch.oval("-0.7,0.08 0.13,0.2", shade);
  sketch.oval("0.7,0.08 0.13,0.2", mix(shade, BLACK, 0.2));
  const face = "0,-0.98 0.52,-0.82 0.72,-0.3 0.68,0.3 0.42,0.82 0,1.03 -0.42,0.82 -0.68,0.3 -0.72,-0.3 -0.52,-0.82";
  sketch.blob(face, sketch.gradient(mix(skin, palette.light, 0.3), skin, "-0.7,-0.6 0.1,0.4"));
  // The side away from the light, cut along brow, nose and chin.
  const dark = "0.1,-0.97 0.52,-0.82 0.72,-0.3 0.68,0.3 0.42,0.82 0.04,1.03 0.12,0.62 0.05,0.42 0.2,0.3 0.08,-0.1 " +
    "0.14,-0.4";
  sketch.blob(dark, shade, 0.72);
  sketch.polygon("0.02,-0.28 0.2,0.3 0.02,0.38 -0.06,0.3", mix(skin, palette.light, 0.45), 0.7);
  for (const side of [-1, 1]) eye(sketch, side, { iris: mix(third, [0.25, 0.16, 0.1], 0.5), hair });
  const mouth = "-0.27,0.59 -0.09,0.54 0,0.56 0.09,0.54 0.27,0.59 0.1,0.7 -0.1,0.7";
  sketch.blob(mouth, mix([0.72, 0.2, 0.22], first, 0.25));
  sketch.line("-0.27,0.6 0,0.615 0.27,0.6", [0.3, 0.06, 0.09], { width: [0.02], smooth: true });
  const locks = "-0.78,0.1 -0.86,-0.5 -0.6,-1.08 0,-1.3 0.62,-1.08 0.88,-0.5 0.8,0.15 0.66,-0.32 0.35,-0.72 " +
    "-0.1,-0.62 -0.5,-0.62 -0.66,-0.3";
  sketch.blob(locks, sketch.gradient(mix(hair, palette.light, 0.25), mix(hair, BLACK, 0.35), "-0.7,-1.2 0.8,0"));
  for (let i = 0; i < 5; i++) {
    const x = -0.5 + i * 0.2;
    const strand = `${x * 0.9},-1.2 ${x * 1.2 - 0.05},-0.95 ${x * 1.35},-0.7`;
    sketch.line(strand, mix(hair, palette.light, 0.55), { width: [0.02, 0.006], smooth: true, alpha: 0.6 });
  }
  if (names(stage, "king", "queen", "princess", "crown", "royal")) {
    const gold = sketch.gradient([1, 0.88, 0.45], [0.75, 0.5, 0.12], "-0.6,-1.7 0.6,-1.1");
    sketch.polygon("-0.6,-1.1 -0.72,-1.75 -0.34,-1.42 0,-1.9 0.34,-1.42 0.72,-1.75 0.6,-1.1 0,-1.2", gold);
  }
  return sketch.layers;
}

/** Draws an eye with its brow; side -1 is left, 1 is right. */
function eye(sketch: Sketch, side: number, { iris, hair }: { iris: Rgb; hair: Rgb }): void {
  const x = side * 0.31;
  sketch.blob(`${x - 0.19},-0.09 ${x},-0.19 ${x + 0.19},-0.1 ${x},-0.02`, [0.97, 0.96, 0.93]);
  sketch.oval(`${x},-0.1 0.085,0.085`, iris);
  sketch.oval(`${x},-0.1 0.042,0.042`, [0.03, 0.03, 0.05]);
  sketch.oval(`${x - 0.025},-0.13 0.02,0.02`, WHITE);
  const lid = `${x - 0.2},-0.1 ${x},-0.2 ${x + 0.2},-0.11`;
  sketch.line(lid, mix(hair, BLACK, 0.5), { width: [0.035], smooth: true });
  const brow = `${x - 0.22 * side},-0.32 ${x},-0.38 ${x + 0.24 * side},-0.3`;
  sketch.line(brow, hair, { width: [0.07, 0.03], smooth: true });
}

/** Draws rays that fan out from a point. */
function rays({ width, height, palette }: Stage, at: Point): Layer[] {
  const color = mix(palette.sky[2], palette.accents[1], 0.4), rx = Math.hypot(width, height);
  return Array.from({ length: 12 }, (_, i) => {
    return fill([at, ...arc(at, { rx, from: i / 12, to: (i + 0.5) / 12, steps: 1 })], color, 0.16);
  });
}
