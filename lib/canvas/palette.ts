/** Chooses the colours of an image from words about time, weather and colour, else at random. */
import { mix, oklch, type Rgb, type Tint, tintColor, tintsIn } from "./color.ts";
import { between, pick, type Random } from "./random.ts";
import WORDS from "./words.json" with { type: "json" };

/** Times and weathers with colours of their own. */
export type Mood = keyof typeof WORDS.moods;

/** Colours of an image. */
export interface Palette {
  mood: Mood;
  /** From the zenith to the horizon. */
  sky: readonly [Rgb, Rgb, Rgb];
  /** Sun, moon, lamps. */
  light: Rgb;
  /** Nearby objects in the shade, and in the light. */
  near: Rgb;
  lit: Rgb;
  /** Accents: three strong colours, a pale one, a dark one. */
  accents: readonly [Rgb, Rgb, Rgb, Rgb, Rgb];
}

/** Chooses the colours. */
export function choosePalette(words: readonly string[], random: Random): Palette {
  const moods = Object.keys(WORDS.moods) as Mood[];
  const mood = moods.find((mood) => WORDS.moods[mood].words.split(" ").some((word) => words.includes(word))) ??
    pick<Mood>(random, ["day", "dawn", "sunset", "sunset", "night"]);
  const shift = between(random, -14, 14);
  const [first, second, third] = tintsIn(words);
  const plain = moodColors(mood, shift);
  if (first === undefined) return { mood, ...plain, accents: accents(random, mood) };
  const others: Tint[] = [second ?? neighbour(first, 38), third ?? neighbour(first, -42)];
  return { mood, ...tinted(plain, [first, ...others]), accents: chosenAccents(first, others) };
}

type Colors = Omit<Palette, "mood" | "accents">;

/** Colours of a mood: lightness, chroma and hue of zenith, sky, horizon, light, near and lit. */
function moodColors(mood: Mood, shift: number): Colors {
  const colors = WORDS.moods[mood].colors.split(", ").map((color) => color.split(" ").map(Number));
  const at = (index: number, turn: number): Rgb => {
    const [lightness = 0, chroma = 0, hue = 0] = colors[index] ?? [];
    return oklch(lightness, chroma, hue + turn);
  };
  return { sky: [at(0, shift), at(1, shift), at(2, shift)], light: at(3, 0), near: at(4, shift), lit: at(5, shift) };
}

/** The mood's lightness with the requested hues. */
function tinted(plain: Colors, tints: readonly Tint[]): Colors {
  const [first, second = first] = tints;
  if (first === undefined || second === undefined) return plain;
  const strong = Math.min(1, first.chroma / 0.12);
  const toward = (color: Rgb, { hue, chroma, lightness }: Tint, share: number): Rgb => {
    const own = lightnessOf(color) * 0.75 + lightness * 0.25;
    return mix(color, oklch(own, Math.min(chroma, 0.02 + chroma * 0.85), hue), share);
  };
  return {
    sky: [
      toward(plain.sky[0], first, 0.85),
      toward(plain.sky[1], first, 0.8),
      toward(plain.sky[2], strong < 0.3 ? first : second, 0.7),
    ],
    light: toward(plain.light, second, 0.15),
    near: toward(plain.near, first, 0.45),
    lit: toward(plain.lit, second, 0.7),
  };
}

/** Approximate OKLCH lightness, for colours of moderate chroma. */
function lightnessOf([red, green, blue]: Rgb): number {
  const linear = 0.2126 * red ** 2.2 + 0.7152 * green ** 2.2 + 0.0722 * blue ** 2.2;
  return Math.cbrt(linear);
}

function neighbour({ hue, chroma, lightness }: Tint, by: number): Tint {
  return { hue: hue + by, chroma: Math.max(chroma, 0.03), lightness: Math.min(0.9, lightness * 0.7 + 0.3) };
}

function accents(random: Random, mood: Mood): Palette["accents"] {
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

function chosenAccents(first: Tint, [second, third]: readonly Tint[]): Palette["accents"] {
  const own = tintColor(first);
  return [
    own,
    tintColor(second ?? first),
    tintColor(third ?? first),
    mix(own, [1, 1, 1], 0.7),
    mix(own, [0.05, 0.05, 0.1], 0.6),
  ];
}
