/** The input of scenes and motifs, and the choice of colours: from words of time, weather and colour, else at random. */
import { mix, oklch, type Rgb, type Tint, tintColor, tintsIn } from "./color.ts";
import type { PixelSize } from "./pixels.ts";
import { between, pick, type Random } from "./random.ts";
import type { Layer } from "./surface.ts";
import WORDS from "./words.json" with { type: "json" };

/** A time of day or a weather that has its own colours. */
export type Mood = keyof typeof WORDS.moods;

/** Colours of an image. */
export interface Palette {
  mood: Mood;
  /** From the zenith to the horizon. */
  sky: readonly [Rgb, Rgb, Rgb];
  /** Colour of the sun, the moon and lamps. */
  light: Rgb;
  /** Colour of nearby objects in the shade. */
  near: Rgb;
  /** Colour of nearby objects in the light. */
  lit: Rgb;
  /** Three strong colours, a pale one and a dark one. */
  accents: readonly [Rgb, Rgb, Rgb, Rgb, Rgb];
}

/** Size, randomness, colours and words of an image to compose. */
export interface Stage extends PixelSize {
  /** The shorter side in pixels. Lengths are shares of it, so that a scene looks the same at every size. */
  unit: number;
  random: Random;
  seed: number;
  palette: Palette;
  /** Words of the prompt in lower case; a word that ends with an s is also included without the s. */
  words: ReadonlySet<string>;
}

/** Composes the layers of a scene. */
export type Scene = (stage: Stage) => Layer[];

/** Returns whether one of the words is in the prompt. */
export function names({ words }: Pick<Stage, "words">, ...list: readonly string[]): boolean {
  return list.some((word) => words.has(word));
}

/** Chooses the colours for the words of a prompt. */
export function choosePalette(words: readonly string[], random: Random): Palette {
  const moods = Object.keys(WORDS.moods) as Mood[];
  const mood = moods.find((mood) => WORDS.moods[mood].words.split(" ").some((word) => words.includes(word))) ??
    pick<Mood>(random, ["day", "dawn", "sunset", "sunset", "night"]);
  const colors = moodColors(mood, between(random, -14, 14));
  const [first, second, third] = tintsIn(words);
  if (first === undefined) return { mood, ...colors, accents: randomAccents(random, mood) };
  const others = [second ?? neighbour(first, 38), third ?? neighbour(first, -42)] as const;
  const color = tintColor(first), pale = mix(color, [1, 1, 1], 0.7), dark = mix(color, [0.05, 0.05, 0.1], 0.6);
  const accents = [color, tintColor(others[0]), tintColor(others[1]), pale, dark] as const;
  return { mood, ...tinted(colors, first, others[0]), accents };
}

type Colors = Omit<Palette, "mood" | "accents">;

/**
 * Returns the colours of a mood, with hues shifted by some degrees. `words.json` has lightness, chroma and hue of
 * zenith, sky, horizon, light, near and lit.
 */
function moodColors(mood: Mood, shift: number): Colors {
  const colors = WORDS.moods[mood].colors.split(", ").map((color) => color.split(" ").map(Number));
  const color = (index: number, hueShift: number): Rgb => {
    const [lightness = 0, chroma = 0, hue = 0] = colors[index] ?? [];
    return oklch(lightness, chroma, hue + hueShift);
  };
  return {
    sky: [color(0, shift), color(1, shift), color(2, shift)],
    light: color(3, 0),
    near: color(4, shift),
    lit: color(5, shift),
  };
}

/** Returns colours with about the same lightness in the requested hues. */
function tinted(colors: Colors, first: Tint, second: Tint): Colors {
  const toward = (color: Rgb, { hue, chroma, lightness }: Tint, share: number): Rgb => {
    const mixedLightness = lightnessOf(color) * 0.75 + lightness * 0.25;
    return mix(color, oklch(mixedLightness, Math.min(chroma, 0.02 + chroma * 0.85), hue), share);
  };
  return {
    sky: [
      toward(colors.sky[0], first, 0.85),
      toward(colors.sky[1], first, 0.8),
      toward(colors.sky[2], first.chroma < 0.036 ? first : second, 0.7),
    ],
    light: toward(colors.light, second, 0.15),
    near: toward(colors.near, first, 0.45),
    lit: toward(colors.lit, second, 0.7),
  };
}

/** Returns the approximate OKLCH lightness of a colour of moderate chroma. */
function lightnessOf([red, green, blue]: Rgb): number {
  const linear = 0.2126 * red ** 2.2 + 0.7152 * green ** 2.2 + 0.0722 * blue ** 2.2;
  return Math.cbrt(linear);
}

/** Returns a paler colour whose hue differs by some degrees. */
function neighbour({ hue, chroma, lightness }: Tint, hueShift: number): Tint {
  return { hue: hue + hueShift, chroma: Math.max(chroma, 0.03), lightness: Math.min(0.9, lightness * 0.7 + 0.3) };
}

function randomAccents(random: Random, mood: Mood): Palette["accents"] {
  const hue = random() * 360;
  const lightness = mood === "night" ? 0.72 : 0.66;
  return [
    oklch(lightness, 0.18, hue),
    oklch(lightness + 0.1, 0.14, hue + 55),
    oklch(lightness - 0.12, 0.15, hue + 185),
    oklch(0.92, 0.05, hue + 60),
    oklch(0.4, 0.11, hue + 215),
  ];
}
