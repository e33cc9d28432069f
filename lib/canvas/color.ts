/** Colours by perceived lightness, chroma and hue (OKLCH). */
import WORDS from "./words.json" with { type: "json" };

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

/** Colours by name. */
export const TINTS: ReadonlyMap<string, Tint> = new Map(Object.entries(WORDS.tints));

/** The colours named in a text, in order, without duplicates. */
export function tintsIn(words: readonly string[]): Tint[] {
  return [...new Set(words.flatMap((word) => TINTS.get(word) ?? []))];
}

/** The colour of a tint. */
export function tintColor({ lightness, chroma, hue }: Tint): Rgb {
  return oklch(lightness, chroma, hue);
}
