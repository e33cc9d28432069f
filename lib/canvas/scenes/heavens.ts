/** The sky of most scenes: its colours, sun or moon, clouds and stars. */
import { mix, oklch, type Rgb } from "../color.ts";
import { clouds, disc, glow, sky, stars } from "../layers.ts";
import type { Point } from "../path.ts";
import { between } from "../random.ts";
import { names, type Stage } from "../stage.ts";
import { eachPixel, lay, type Layer } from "../surface.ts";

/** A sky and the position of its light. */
export interface Heavens {
  layers: Layer[];
  light: Point;
  /** Side of the light: -1 is left, 1 is right. */
  side: number;
}

/**
 * Composes a sky that ends at `horizon`. Except by day, `height` is about how high the light stands, as a share of the
 * sky.
 */
export function heavens(stage: Stage, { horizon, height }: { horizon: number; height: number }): Heavens {
  const { width, unit, random, seed, palette } = stage;
  const { mood, light: color } = palette;
  const side = random() < 0.5 ? -1 : 1;
  const light: Point = [
    width * (0.5 + side * between(random, 0.1, 0.27)),
    horizon * (mood === "day" ? between(random, 0.2, 0.35) : 1 - height * between(random, 0.5, 1.1)),
  ];
  const layers: Layer[] = [sky(palette.sky, horizon)];
  const isNight = mood === "night";
  if (isNight || names(stage, "star", "starry")) {
    layers.push(stars(stage, { bottom: horizon, count: 420, color: [1, 1, 0.96] }));
  }
  layers.push(glow(light, { radius: unit * 1.25, color, amount: isNight ? 0.28 : 0.5, squeeze: 0.8 }));
  layers.push(glow(light, { radius: unit * 0.42, color, amount: isNight ? 0.4 : 0.7 }));
  const radius = unit * between(random, 0.05, 0.085) * (names(stage, "sun", "moon", "huge", "giant") ? 1.5 : 1);
  if (mood !== "storm") layers.push(...orb(stage, light, radius));
  const cover = names(stage, "cloud", "cloudy") || mood === "storm" ? 0.85 : between(random, 0.2, 0.6);
  const lit = mix(palette.sky[2], color, isNight ? 0.1 : 0.65), dark = mix(palette.sky[1], palette.sky[0], 0.5);
  layers.push(clouds(stage, { bottom: horizon * 0.94, cover, lit, dark, light, seed: seed + 11 }));
  if (names(stage, "rainbow")) layers.push(rainbow(stage, horizon));
  return { layers, light, side };
}

/** Draws the sun or, at night, the moon. */
function orb({ palette, unit, seed }: Stage, at: Point, radius: number): Layer[] {
  const { light: color, mood } = palette;
  const out: Layer[] = [disc(at, { radius, color, soft: Math.max(1.2, radius * 0.04) })];
  if (mood !== "night") return out;
  // Lunar maria.
  const gray: Rgb = mix(color, palette.sky[1], 0.35);
  for (let i = 0; i < 6; i++) {
    const angle = (seed % 97 + i * 2.4) % (2 * Math.PI);
    const distance = radius * (0.2 + 0.09 * i);
    const style = { radius: radius * (0.26 - i * 0.03), color: gray, alpha: 0.4, soft: unit * 0.012 };
    out.push(disc([at[0] + Math.cos(angle) * distance, at[1] + Math.sin(angle) * distance], style));
  }
  return out;
}

/** Colours of a rainbow, from the outside to the inside. */
const RAINBOW = [29, 60, 105, 148, 250, 300].map((hue) => oklch(0.75, 0.18, hue));

function rainbow({ width, unit }: Stage, horizon: number): Layer {
  const inner = unit * 0.62, thickness = unit * 0.1;
  return (band) => {
    eachPixel(band, { bottom: horizon }, (x, y, at) => {
      const share = (Math.hypot(x - width * 0.45, y - horizon) - inner) / thickness;
      if (share <= 0 || share >= 1) return;
      lay(band.data, at, RAINBOW[Math.floor((1 - share) * 5.999)] ?? [1, 1, 1], Math.sin(share * Math.PI) * 0.34);
    });
  };
}
