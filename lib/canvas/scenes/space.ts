/** Planets among stars. */
import { mix, oklch, type Rgb } from "../color.ts";
import { along, around, glow, grid, sky, stars } from "../layers.ts";
import type { Point } from "../path.ts";
import { between, clamp, fractal, smooth } from "../random.ts";
import type { Stage } from "../stage.ts";
import { eachPixel, lay, type Layer, shine } from "../surface.ts";

/** Colours of the small planet. */
const MOON: readonly Rgb[] = [[0.3, 0.3, 0.33], [0.62, 0.6, 0.58], [0.8, 0.78, 0.75]];

/** A nebula and stars, a large planet with rings and a small planet. */
export function space(stage: Stage): Layer[] {
  const { width, height, unit, random, seed, palette } = stage;
  const hue = random() * 360;
  const { accents } = palette;
  const night: Rgb = [0.015, 0.015, 0.04];
  const dark = mix(mix(palette.sky[0], night, 0.75), accents[0], 0.06);
  const center: Point = [width * between(random, 0.3, 0.7), height * between(random, 0.36, 0.48)];
  const radius = unit * between(random, 0.2, 0.27);
  const light: Point = [random() < 0.5 ? -0.65 : 0.65, -0.6];
  const moon: Point = [center[0] - Math.sign(light[0]) * unit * 0.42, center[1] - unit * 0.2];
  return [
    sky([night, dark, night], height),
    nebula(stage, [mix(accents[0], oklch(0.5, 0.16, hue), 0.3), mix(accents[1], oklch(0.6, 0.15, hue + 70), 0.3)]),
    stars(stage, { bottom: height * 1.15, count: 900, color: [1, 0.98, 0.94] }),
    glow(center, { radius: radius * 1.9, color: accents[0], amount: 0.34 }),
    rings(stage, center, { radius, half: "far" }),
    planet({ center, radius, light, colors: [accents[4], accents[0], accents[1], accents[3]], seed }),
    rings(stage, center, { radius, half: "near" }),
    planet({ center: moon, radius: radius * 0.2, light, colors: MOON, seed: seed + 4 }),
  ];
}

/** Draws glowing clouds in two colours. */
function nebula({ width, height, unit, seed }: Stage, colors: readonly [Rgb, Rgb]): Layer {
  const columns = Math.min(480, Math.ceil(width / 2)), rows = Math.max(2, Math.ceil(columns * height / width));
  const step = width / columns;
  const make = (shift: number) =>
    grid(columns, rows, (column, row) => {
      const x = column * step / unit * 1.9, y = row * step / unit * 1.9;
      const bend = fractal(x * 0.9 + 7, y * 0.9, { seed: seed + shift + 1, octaves: 3 });
      return fractal(x + bend * 1.6, y + bend * 1.1, { seed: seed + shift, octaves: 6 });
    });
  const first = make(0), second = make(40);
  return (band) => {
    eachPixel(band, {}, (x, y, at) => {
      shine(band.data, at, colors[0], smooth(0.42, 0.85, first(x / step, y / step)) * 0.75);
      shine(band.data, at, colors[1], smooth(0.48, 0.85, second(x / step, y / step)) * 0.6);
    });
  };
}

/** Draws a banded planet. `light` is the direction of the light. */
function planet(
  { center: [cx, cy], radius, light, colors, seed }: Record<"center" | "light", Point> & {
    radius: number;
    colors: readonly Rgb[];
    seed: number;
  },
): Layer {
  const bands = grid(200, 200, (column, row) => {
    const swirl = fractal(column / 40, row / 26, { seed, octaves: 4 });
    return fractal(swirl * 1.2, row / 17 + swirl * 1.1, { seed: seed + 1, octaves: 4 });
  });
  const length = Math.hypot(light[0], light[1], 0.55);
  return (band) => {
    eachPixel(band, around([cx, cy], radius + 1), (x, y, at) => {
      const dx = (x + 0.5 - cx) / radius, dy = (y + 0.5 - cy) / radius;
      const square = dx * dx + dy * dy;
      const cover = clamp((1 - Math.sqrt(square)) * radius + 0.5);
      if (cover <= 0) return;
      const z = Math.sqrt(Math.max(0, 1 - square));
      const bright = smooth(-0.18, 0.95, (dx * light[0] + dy * light[1] + z * 0.55) / length);
      const tilt = dy * 0.96 + dx * 0.26, bulge = (dx * 0.96 - dy * 0.26) / (0.45 + z);
      const tone = bands(100 + bulge * 60, 100 + tilt * 92);
      const color = mix([0.01, 0.01, 0.03], along(colors, (tone - 0.25) * 1.9), bright);
      lay(band.data, at, mix(color, [0.85, 0.93, 1], (1 - z) ** 3 * bright * 0.5), cover);
    });
  };
}

/** Draws one half of the planet's rings: the far one is painted before the planet, the near one after it. */
function rings(
  { seed, palette }: Stage,
  [cx, cy]: Point,
  { radius, half }: { radius: number; half: "near" | "far" },
): Layer {
  const cos = Math.cos(0.28), sin = Math.sin(0.28), flat = 0.24;
  return (band) => {
    eachPixel(band, around([cx, cy], radius * 2.3, radius * 1.5), (x, y, at) => {
      const dx = (x - cx) / radius, dy = (y - cy) / radius;
      const along = dx * cos + dy * sin, across = (dy * cos - dx * sin) / flat;
      const distance = Math.sqrt(along * along + across * across);
      if ((across > 0) !== (half === "near") || distance < 1.32 || distance > 2.15) return;
      const fine = fractal(distance * 22, 0.5, { seed: seed + 77, octaves: 3 });
      const gap = Math.abs(distance - 1.78) < 0.035 ? 0.1 : 1;
      const alpha = smooth(1.32, 1.4, distance) * smooth(2.15, 2.05, distance) * smooth(0.2, 0.75, fine) * gap * 0.9;
      lay(band.data, at, mix(palette.accents[3], [0.2, 0.18, 0.2], 1 - fine), alpha);
    });
  };
}
