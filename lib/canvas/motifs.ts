/** Small objects that a prompt names, drawn into a scene. */
import { mix, type Rgb, tintColor, TINTS } from "./color.ts";
import { disc, glow } from "./layers.ts";
import { fill, type Point } from "./path.ts";
import { between } from "./random.ts";
import { Sketch } from "./sketch.ts";
import type { Stage } from "./stage.ts";
import type { Layer } from "./surface.ts";

const WHITE: Rgb = [1, 1, 1];

/** A sailing boat; the point is on its waterline. */
export function sailboat({ palette, seed }: Stage, at: Point, size: number): Layer[] {
  const sketch = new Sketch(at, size, { flip: seed % 2 === 0 });
  const white = mix([1, 0.98, 0.94], palette.sky[2], 0.15);
  const cloth = (color: Rgb) => sketch.gradient(color, mix(color, palette.near, 0.35), "0,-1.1 0,0");
  sketch.box("-0.012,-1.2 0.024,1.2", palette.near);
  sketch.polygon("0.03,-1.16 0.03,-0.14 0.56,-0.14 0.4,-0.5 0.2,-0.88", cloth(white));
  sketch.polygon("-0.04,-1.02 -0.04,-0.14 -0.42,-0.14 -0.26,-0.55", cloth(mix(white, palette.accents[0], 0.75)));
  sketch.polygon("-0.52,-0.1 0.6,-0.1 0.44,0.1 -0.38,0.1", mix(palette.accents[0], palette.near, 0.45));
  sketch.oval("0,0.15 0.5,0.035", palette.near, 0.45);
  return sketch.layers;
}

/** A few distant birds. */
export function birds({ palette, random }: Stage, [x, y]: Point, size: number): Layer[] {
  return Array.from({ length: 5 }, () => {
    const at: Point = [x + between(random, -1.6, 1.6) * size, y + between(random, -0.7, 0.7) * size];
    const wing = size * between(random, 0.12, 0.24);
    const sketch = new Sketch(at, wing, { turns: between(random, -0.03, 0.03) });
    const path = "-1,-0.25 -0.45,-0.42 0,0 0.45,-0.42 1,-0.25";
    sketch.line(path, palette.near, { width: [0.17], smooth: true, alpha: 0.85 });
    return sketch.layers;
  }).flat();
}

/** A hot-air balloon, striped. */
export function balloon({ palette }: Stage, at: Point, size: number): Layer[] {
  const sketch = new Sketch(at, size);
  const [first, second] = palette.accents;
  for (const [i, share] of [1, 0.72, 0.44, 0.16].entries()) {
    const color = i % 2 === 0 ? first : mix(second, WHITE, 0.35);
    const half = [[0.55, -0.84], [0.74, -0.4], [0.5, 0.12], [0.16, 0.44]].map(([x = 0, y = 0]) => [x * share, y]);
    const mirrored = half.map(([x = 0, y = 0]) => [-x, y]).reverse();
    const paint = sketch.gradient(mix(color, WHITE, 0.22), mix(color, [0, 0, 0.05], 0.4), "-0.6,-0.8 0.7,0.2");
    sketch.blob([[0, -1], ...half, ...mirrored].join(" "), paint);
  }
  const rope = mix(palette.near, [0.2, 0.1, 0.05], 0.5);
  for (const side of [-1, 1]) sketch.line(`${side * 0.13},0.43 ${side * 0.09},0.7`, rope, { width: [0.018] });
  sketch.box("-0.12,0.7 0.24,0.19", mix(rope, [0.7, 0.45, 0.2], 0.5));
  return sketch.layers;
}

/** A small house with lit windows; the point is at its foot. */
export function house({ palette }: Stage, at: Point, size: number): Layer[] {
  const sketch = new Sketch(at, size);
  const wall = mix([0.93, 0.88, 0.8], palette.sky[1], 0.35);
  const lamp: Rgb = [1, 0.85, 0.45];
  sketch.box("-0.5,-0.5 1,0.52", sketch.gradient(wall, mix(wall, palette.near, 0.55), "-0.5,0 0.5,0"));
  sketch.box("0.22,-0.98 0.13,0.4", mix(wall, palette.near, 0.6));
  sketch.polygon("-0.62,-0.48 0,-1 0.62,-0.48", mix(palette.accents[0], palette.near, 0.4));
  sketch.box("-0.34,-0.36 0.18,0.18", lamp);
  sketch.box("0.14,-0.36 0.18,0.18", lamp);
  sketch.box("-0.08,-0.3 0.16,0.31", mix(palette.near, [0.3, 0.15, 0.05], 0.5));
  const amount = palette.mood === "day" ? 0.05 : 0.3;
  sketch.add(glow(sketch.point("0,-0.27"), { radius: size * 1.1, color: lamp, amount }));
  return sketch.layers;
}

/** A lighthouse with its beam; the point is at its foot. */
export function lighthouse({ palette, width }: Stage, at: Point, size: number): Layer[] {
  const sketch = new Sketch(at, size);
  const [x, y] = at;
  const beam: Rgb = mix([1, 0.95, 0.75], palette.light, 0.4);
  const red: Rgb = mix(palette.accents[0], [0.75, 0.16, 0.14], 0.4);
  sketch.add(fill([[x, y - size * 1.08], [x - width, y - size * 1.5], [x - width, y - size * 0.8]], beam, 0.22));
  sketch.blob("-0.55,0.1 -0.35,-0.07 0,-0.11 0.4,-0.05 0.6,0.12", palette.near);
  const wall = sketch.gradient([0.97, 0.95, 0.92], [0.55, 0.55, 0.62], "-0.17,0 0.17,0");
  sketch.polygon("-0.17,0 -0.1,-1 0.1,-1 0.17,0", wall);
  for (const low of [0.16, 0.5, 0.8]) {
    const high = low + 0.13, wide = 0.17 - 0.07 * low, narrow = 0.17 - 0.07 * high;
    sketch.polygon(`${-wide},${-low} ${-narrow},${-high} ${narrow},${-high} ${wide},${-low}`, red);
  }
  sketch.box("-0.07,-1.15 0.14,0.15", [1, 0.95, 0.7]);
  sketch.polygon("-0.11,-1.14 0,-1.27 0.11,-1.14", palette.near);
  sketch.add(glow([x, y - size * 1.08], { radius: size * 0.8, color: beam, amount: 0.8 }));
  return sketch.layers;
}

/** A rocket on its way up. */
export function rocket({ palette }: Stage, at: Point, size: number): Layer[] {
  const sketch = new Sketch(at, size, { turns: 0.06 });
  const [color] = palette.accents;
  sketch.add(glow(sketch.point("0,0.85"), { radius: size * 0.9, color: [1, 0.6, 0.2], amount: 0.8 }));
  sketch.blob("0,0.42 0.17,0.7 0,1.25 -0.17,0.7", [1, 0.62, 0.15]);
  sketch.blob("0,0.45 0.09,0.62 0,0.95 -0.09,0.62", [1, 0.93, 0.6]);
  sketch.polygon("-0.18,0.1 -0.42,0.6 -0.14,0.46", color);
  sketch.polygon("0.18,0.1 0.42,0.6 0.14,0.46", color);
  const hull = "0,-0.85 0.2,-0.35 0.2,0.2 0.13,0.5 -0.13,0.5 -0.2,0.2 -0.2,-0.35";
  sketch.blob(hull, sketch.gradient([0.96, 0.96, 0.98], [0.5, 0.52, 0.6], "-0.2,0 0.22,0"));
  sketch.blob("0,-0.88 0.16,-0.48 0,-0.44 -0.16,-0.48", color);
  sketch.add(disc(sketch.point("0,-0.18"), { radius: size * 0.1, color: [0.3, 0.6, 0.85], dark: [0.05, 0.1, 0.25] }));
  return sketch.layers;
}

/** A heart. */
export function heart({ palette }: Stage, at: Point, size: number): Layer[] {
  const red = mix(palette.accents[0], tintColor({ hue: 20, chroma: 0.21, lightness: 0.56 }), 0.5);
  const outline = "0,-0.32 0.28,-0.62 0.64,-0.52 0.74,-0.16 0.46,0.3 0.02,0.72 -0.02,0.72 -0.46,0.3 -0.74,-0.16 " +
    "-0.64,-0.52 -0.28,-0.62";
  const shadow = new Sketch([at[0] + size * 0.04, at[1] + size * 0.06], size);
  shadow.blob(outline, [0, 0, 0.05], 0.25);
  const sketch = new Sketch(at, size);
  sketch.blob(outline, sketch.gradient(mix(red, WHITE, 0.3), mix(red, [0.1, 0, 0.05], 0.35), "-0.5,-0.6 0.3,0.7"));
  const gloss = new Sketch(at, size, { turns: -0.04 });
  gloss.oval("-0.36,-0.32 0.15,0.09", WHITE, 0.5);
  return [...shadow.layers, ...sketch.layers, ...gloss.layers];
}

/** A sitting cat, in the first colour of the prompt; the point is at its feet. */
export function cat({ palette, words }: Stage, at: Point, size: number): Layer[] {
  const sketch = new Sketch(at, size);
  const tint = [...words].map((word) => TINTS.get(word)).find((tint) => tint !== undefined);
  const fur = tint === undefined ? mix(palette.near, [0.05, 0.04, 0.06], 0.5) : tintColor(tint);
  const coat = sketch.gradient(mix(fur, palette.light, 0.25), mix(fur, [0, 0, 0], 0.4), "-0.4,-1 0.4,0");
  sketch.line("0.3,-0.06 0.62,-0.02 0.72,-0.28 0.6,-0.48", fur, { width: [0.11, 0.07], smooth: true });
  sketch.blob("0,-0.72 0.24,-0.5 0.36,-0.16 0.26,0.01 -0.26,0.01 -0.36,-0.16 -0.24,-0.5", coat);
  sketch.polygon("-0.25,-0.8 -0.24,-1.17 -0.03,-0.96", fur);
  sketch.polygon("0.25,-0.8 0.24,-1.17 0.03,-0.96", fur);
  sketch.oval("0,-0.78 0.28,0.24", coat);
  for (const side of [-1, 1]) {
    sketch.oval(`${side * 0.11},-0.81 0.06,0.065`, mix(palette.light, [0.95, 0.85, 0.2], 0.6));
    sketch.oval(`${side * 0.11},-0.81 0.018,0.058`, [0.02, 0.02, 0.03]);
    for (const lean of [-0.03, 0.03]) {
      const whisker = `${side * 0.07},-0.69 ${side * 0.4},${-0.7 + lean}`;
      sketch.line(whisker, [0.95, 0.95, 0.95], { width: [0.008], alpha: 0.6 });
    }
  }
  sketch.polygon("-0.035,-0.725 0.035,-0.725 0,-0.69", [0.95, 0.6, 0.6]);
  return sketch.layers;
}

/** A fish. */
export function fish({ palette }: Stage, at: Point, size: number): Layer[] {
  const sketch = new Sketch(at, size);
  const [color, second] = palette.accents;
  const body = sketch.gradient(mix(color, WHITE, 0.3), mix(color, [0, 0, 0.1], 0.35), "0,-0.3 0,0.35");
  sketch.polygon("0.5,0 0.95,-0.34 0.86,0 0.95,0.34", second);
  sketch.blob("-0.72,0.02 -0.3,-0.32 0.2,-0.26 0.58,0 0.2,0.26 -0.3,0.32", body);
  sketch.blob("-0.05,-0.26 0.2,-0.5 0.36,-0.2", second);
  sketch.add(disc(sketch.point("-0.44,-0.06"), { radius: size * 0.07, color: WHITE }));
  sketch.add(disc(sketch.point("-0.46,-0.06"), { radius: size * 0.035, color: [0.02, 0.02, 0.05] }));
  return sketch.layers;
}

/** A leafy tree; the point is at its foot. */
export function tree({ palette, random }: Stage, at: Point, size: number): Layer[] {
  const sketch = new Sketch(at, size);
  const [x, y] = at;
  const leaf = mix(palette.lit, palette.near, 0.35);
  const bark = mix(palette.near, [0.22, 0.12, 0.06], 0.5);
  sketch.line("0,0 0.02,-0.3 -0.02,-0.7", bark, { width: [0.1, 0.04], smooth: true });
  sketch.line("0,-0.38 0.2,-0.62", bark, { width: [0.05, 0.02] });
  sketch.line("0,-0.42 -0.2,-0.66", bark, { width: [0.045, 0.02] });
  for (let i = 0; i < 26; i++) {
    // Steps near the golden angle spread the leaves evenly over a disc.
    const angle = i * 2.4, distance = Math.sqrt(i / 26) * size * 0.34;
    const color = mix(leaf, i % 3 === 0 ? palette.accents[1] : palette.lit, random() * 0.35);
    const radius = size * between(random, 0.08, 0.15);
    const center: Point = [x + Math.cos(angle) * distance * 1.15, y - size * 0.78 + Math.sin(angle) * distance * 0.85];
    sketch.add(disc(center, { radius, color, dark: mix(color, [0, 0.02, 0.05], 0.55), soft: size * 0.02 }));
  }
  return sketch.layers;
}
