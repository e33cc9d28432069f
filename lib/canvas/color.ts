/** Colours by perceived lightness, chroma and hue (OKLCH). */

/** Red, green and blue in sRGB, 0 to 1. */
export type Rgb = readonly [number, number, number];

/** Lightness 0 to 1, chroma 0 to about 0.3, hue in degrees. Colours outside of sRGB are clamped. */
export function oklch(lightness: number, chroma: number, hue: number): Rgb {
  const angle = hue * Math.PI / 180;
  const a = chroma * Math.cos(angle), b = chroma * Math.sin(angle);
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    toScreen(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
    toScreen(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
    toScreen(-0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * short),
  ];
}

function toScreen(linear: number): number {
  const value = Math.min(1, Math.max(0, linear));
  return value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055;
}

/** A colour between two. */
export function mix(from: Rgb, to: Rgb, share: number): Rgb {
  const at = (channel: 0 | 1 | 2) => from[channel] + (to[channel] - from[channel]) * share;
  return [at(0), at(1), at(2)];
}

/** Luma of a colour, on the scale of its channels. */
export function luma(red: number, green: number, blue: number): number {
  return 0.299 * red + 0.587 * green + 0.114 * blue;
}

/** A named colour: hue in degrees, its highest chroma, lightness. */
export interface Tint {
  hue: number;
  chroma: number;
  lightness: number;
}

/** English colour names: hue, chroma, lightness. */
const TINT_TABLE = `
  red 27 0.21 0.58, crimson 20 0.2 0.48, scarlet 30 0.22 0.58, orange 58 0.17 0.73, amber 75 0.16 0.78,
  gold 88 0.15 0.82, golden 88 0.15 0.82, yellow 100 0.17 0.88, lime 125 0.2 0.8, green 145 0.17 0.6,
  emerald 160 0.15 0.62, olive 112 0.1 0.52, teal 190 0.1 0.56, turquoise 190 0.12 0.75, cyan 205 0.13 0.8,
  blue 258 0.19 0.55, azure 240 0.13 0.72, navy 262 0.11 0.3, indigo 280 0.17 0.42, violet 298 0.19 0.55,
  purple 308 0.19 0.5, magenta 330 0.24 0.6, pink 355 0.13 0.78, rose 5 0.15 0.68, brown 55 0.08 0.42,
  beige 80 0.04 0.87, cream 90 0.04 0.94, silver 250 0.01 0.8, gray 250 0.005 0.6, grey 250 0.005 0.6,
  black 270 0.005 0.18, white 90 0.004 0.98`;

/** Colours by name. */
export const TINTS: ReadonlyMap<string, Tint> = new Map(
  TINT_TABLE.trim().split(/,\s+/).map((row): [string, Tint] => {
    const [name = "", hue, chroma, lightness] = row.split(" ");
    return [name, { hue: Number(hue), chroma: Number(chroma), lightness: Number(lightness) }];
  }),
);

/** The colours named in a text, in order, without duplicates. */
export function tintsIn(words: readonly string[]): Tint[] {
  const found = new Set<Tint>();
  for (const word of words) {
    const named = TINTS.get(word);
    if (named !== undefined) found.add(named);
  }
  return [...found];
}

/** The colour of a tint. */
export function tintColor({ lightness, chroma, hue }: Tint): Rgb {
  return oklch(lightness, chroma, hue);
}
