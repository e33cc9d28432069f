/** The sea, with islands, and perhaps a boat or a beach. */
import { mix } from "../color.ts";
import { land, ridgeLine, water } from "../layers.ts";
import type { Point } from "../path.ts";
import { between } from "../random.ts";
import { Sketch } from "../sketch.ts";
import { names, type Stage } from "../stage.ts";
import type { Layer } from "../surface.ts";
import { birds, sailboat } from "../motifs.ts";
import { heavens } from "./heavens.ts";

/** Sky over water, with distant islands and birds; a boat by chance, a beach if the prompt names one. */
export function sea(stage: Stage): Layer[] {
  const { width, height, unit, random, seed, palette } = stage;
  const horizon = height * between(random, 0.5, 0.58);
  const { layers, light, side } = heavens(stage, { horizon, height: 0.45 });
  const far = mix(palette.sky[2], palette.near, 0.45);
  const islands = { base: horizon + unit * 0.07, rise: unit * 0.2, scale: unit * 0.55, seed: seed + 5, sharp: 0.3 };
  const haze = mix(far, palette.sky[2], 0.6), depth = unit * 0.16;
  const coast = { color: far, lit: mix(far, palette.lit, 0.5), haze, depth, light: side, relief: 0.7, seed };
  const glitter = palette.mood === "night" ? 0.75 : 1, deep = mix(palette.sky[0], palette.near, 0.45);
  const waves = { deep, light: light[0], color: palette.light, glitter, seed: seed + 2, unit };
  layers.push(
    land(ridgeLine(width, islands), coast),
    water({ horizon, colors: [palette.sky[2], palette.sky[1], palette.sky[0]], ...waves }),
  );
  if (!names(stage, "boat", "ship", "sailboat", "fish", "whale", "dolphin") && random() < 0.7) {
    const at: Point = [width * (0.5 - side * between(random, 0.1, 0.3)), horizon + unit * 0.09];
    layers.push(...sailboat(stage, at, unit * 0.13));
  }
  if (names(stage, "beach", "sand", "coast", "shore", "island")) layers.push(...beach(stage, side));
  layers.push(...birds(stage, [width * (0.5 - side * 0.2), horizon * 0.45], unit * 0.12));
  return layers;
}

/** Draws a beach in the lower corner on a side: -1 is right, 1 is left. */
function beach({ width, height, unit, palette }: Stage, side: number): Layer[] {
  const at: Point = [side > 0 ? 0 : width, height - unit * 0.33];
  const sketch = new Sketch(at, Math.max(unit, width * 0.7), { flip: side < 0 });
  const sand = mix([0.93, 0.83, 0.66], palette.sky[2], 0.3);
  const paint = sketch.gradient(sand, mix(sand, palette.near, 0.5), "0,0.03 0,0.33");
  sketch.blob("-0.2,0.25 0.2,0.1 0.55,0.13 0.8,0.28 0.9,0.6 -0.3,0.6", paint);
  return sketch.layers;
}
