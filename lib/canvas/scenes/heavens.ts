/** The sky, which most scenes begin with: its colours, sun or moon, clouds and stars. */
import { mix, type Rgb } from "../color.ts";
import { clouds, disc, glow, sky, stars } from "../layers.ts";
import type { Point } from "../path.ts";
import { between } from "../random.ts";
import { names, type Stage } from "../stage.ts";
import type { Layer } from "../surface.ts";

/** A sky and where its light is. */
export interface Heavens {
  layers: Layer[];
  light: Point;
  /** -1: from the left, 1: from the right. */
  side: number;
}

/** Composes a sky that ends at `horizon`. */
export function heavens(stage: Stage, { horizon, height = 0.5 }: { horizon: number; height?: number }): Heavens {
  const { width, unit, random, seed, palette } = stage;
  const { mood, light: color } = palette;
  const side = random() < 0.5 ? -1 : 1;
  const light: Point = [
    width * (0.5 + side * between(random, 0.1, 0.27)),
    horizon * (mood === "day" ? between(random, 0.2, 0.35) : 1 - height * between(random, 0.5, 1.1)),
  ];
  const layers: Layer[] = [sky(palette.sky, { top: 0, bottom: horizon })];
  const isNight = mood === "night";
  if (isNight || names(stage, "star", "starry")) {
    layers.push(stars(random, { width, bottom: horizon, count: 420, unit, color: [1, 1, 0.96] }));
  }
  layers.push(glow(light, { radius: unit * 1.25, color, amount: isNight ? 0.28 : 0.5, squeeze: 0.8 }));
  layers.push(glow(light, { radius: unit * 0.42, color, amount: isNight ? 0.4 : 0.7 }));
  const radius = unit * between(random, 0.05, 0.085) * (names(stage, "sun", "moon", "huge", "giant") ? 1.5 : 1);
  if (mood !== "storm") layers.push(...orb(stage, light, radius));
  layers.push(clouds(stage, {
    top: 0,
    bottom: horizon * 0.94,
    cover: names(stage, "cloud", "cloudy") || mood === "storm" ? 0.85 : between(random, 0.2, 0.6),
    lit: mix(palette.sky[2], color, isNight ? 0.1 : 0.65),
    dark: mix(palette.sky[1], palette.sky[0], 0.5),
    light,
    seed: seed + 11,
  }));
  if (names(stage, "rainbow")) layers.push(rainbow(stage, horizon));
  return { layers, light, side };
}

function orb({ palette, unit, seed }: Stage, at: Point, radius: number): Layer[] {
  const { light: color, mood } = palette;
  const out: Layer[] = [disc(at, { radius, color, soft: Math.max(1.2, radius * 0.04) })];
  if (mood !== "night") return out;
  // Seas of the moon.
  const gray: Rgb = mix(color, palette.sky[1], 0.35);
  for (let i = 0; i < 6; i++) {
    const turn = (seed % 97 + i * 2.4) % (2 * Math.PI);
    const away = radius * (0.2 + 0.09 * i);
    out.push(disc([at[0] + Math.cos(turn) * away, at[1] + Math.sin(turn) * away], {
      radius: radius * (0.26 - i * 0.03),
      color: gray,
      alpha: 0.4,
      soft: unit * 0.012,
    }));
  }
  return out;
}

function rainbow({ width, unit }: Stage, horizon: number): Layer {
  const colors: Rgb[] = [[0.9, 0.2, 0.2], [1, 0.6, 0.2], [1, 0.95, 0.35], [0.3, 0.85, 0.4], [0.3, 0.55, 1], [
    0.6,
    0.3,
    0.9,
  ]];
  const inner = unit * 0.62, thick = unit * 0.1;
  return ({ width: span, top, bottom, data }) => {
    for (let y = top; y < Math.min(bottom, horizon); y++) {
      for (let x = 0; x < span; x++) {
        const share = (Math.hypot(x - width * 0.45, y - horizon) - inner) / thick;
        if (share <= 0 || share >= 1) continue;
        const color = colors[Math.floor((1 - share) * 5.999)] ?? [1, 1, 1];
        const alpha = Math.sin(share * Math.PI) * 0.34;
        const at = ((y - top) * span + x) * 3;
        for (let channel = 0; channel < 3; channel++) {
          const value = data[at + channel] ?? 0;
          data[at + channel] = value + ((color[channel] ?? 0) - value) * alpha;
        }
      }
    }
  };
}
