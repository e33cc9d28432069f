/** Colours by perceived lightness, chroma and hue (OKLCH). */
import WORDS from "./words.json" with { type: "json" };

/** Red, green and blue in sRGB, 0 to 1. */
export type Rgb = readonly [number, number, number];

/**
 * Converts from OKLCH: lightness 0 to 1, chroma 0 to about 0.3, hue in degrees. Colours outside of sRGB are clamped.
 * The matrices are those of https://bottosson.github.io/posts/oklab/.
 */
export function oklch(lightness: number, chroma: number, hue: number): Rgb {
  const angle = hue * Math.PI / 180;
  const a = chroma * Math.cos(angle), b = chroma * Math.sin(angle);
  const longCone = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const mediumCone = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const shortCone = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    encodeChannel(4.0767416621 * longCone - 3.3077115913 * mediumCone + 0.2309699292 * shortCone),
    encodeChannel(-1.2684380046 * longCone + 2.6097574011 * mediumCone - 0.3413193965 * shortCone),
    encodeChannel(-0.0041960863 * longCone - 0.7034186147 * mediumCone + 1.707614701 * shortCone),
  ];
}

/** Applies the transfer function of sRGB to a linear channel. */
function encodeChannel(linear: number): number {
  const value = Math.min(1, Math.max(0, linear));
  return value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055;
}

/** Returns the colour between two at a share of the way, 0 to 1. */
export function mix(from: Rgb, to: Rgb, share: number): Rgb {
  const mixed = (channel: 0 | 1 | 2) => from[channel] + (to[channel] - from[channel]) * share;
  return [mixed(0), mixed(1), mixed(2)];
}

/** Returns the luma of a colour, on the scale of its channels. */
export function luma(red: number, green: number, blue: number): number {
  return 0.299 * red + 0.587 * green + 0.114 * blue;
}

/** A named colour: hue in degrees, chroma and lightness as in `oklch`. */
export interface Tint {
  hue: number;
  chroma: number;
  lightness: number;
}

/** Colours by name. */
export const TINTS: ReadonlyMap<string, Tint> = new Map(Object.entries(WORDS.tints));

/** Returns the colours that words name, in order, without duplicates. */
export function tintsIn(words: readonly string[]): Tint[] {
  return [...new Set(words.flatMap((word) => TINTS.get(word) ?? []))];
}

/** Returns a named colour in sRGB. */
export function tintColor({ lightness, chroma, hue }: Tint): Rgb {
  return oklch(lightness, chroma, hue);
}
