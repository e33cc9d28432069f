/** Composes an image from the words of a prompt: a scene, its colours, and motifs. */
import type { PixelSize } from "./pixels.ts";
import { fractal, hashText, pick, type Random, randomOf } from "./random.ts";
import { brush, disc, eachPixel, vignette } from "./layers.ts";
import { balloon, birds, cat, fish, heart, house, lighthouse, type Motif, rocket, sailboat, tree } from "./motifs.ts";
import { choosePalette } from "./palette.ts";
import { fill, stroke } from "./path.ts";
import { city } from "./scenes/city.ts";
import { desert, forest, meadow, mountains } from "./scenes/land.ts";
import { sea } from "./scenes/sea.ts";
import { abstract, portrait } from "./scenes/shapes.ts";
import { space } from "./scenes/space.ts";
import { names, type Scene, type Stage } from "./stage.ts";
import { lay, type Layer } from "./surface.ts";

/** Scenes and their words. The scene with the most words in the prompt wins; the earliest in case of a tie. */
const SCENES: readonly (readonly [scene: Scene, words: string])[] = [
  [city, "city skyline town street urban downtown skyscraper tower building metropolis stadt ville neon"],
  [
    space,
    "space planet galaxy star saturn nebula universe cosmos cosmic astronaut alien orbit rocket spaceship weltall",
  ],
  [portrait, "portrait face man woman girl boy person people king queen lady head selfie princess human child"],
  [
    sea,
    "sea ocean beach water coast harbor harbour wave boat ship sail sailboat island lighthouse fish whale bay meer mer " +
    "shore",
  ],
  [desert, "desert dune sand cactus sahara camel pyramid canyon mars wüste"],
  [forest, "forest wood woods jungle trail fairy mushroom fox wolf bear deer wald forêt"],
  [
    mountains,
    "mountain landscape alp peak hill snow glacier valley lake river volcano hike berg montagne cabin winter",
  ],
  [
    meadow,
    "meadow garden flower field grass spring farm countryside village rose tulip house balloon cat dog sheep park tree " +
    "barn",
  ],
  [
    abstract,
    "abstract pattern logo icon geometric shape cubist bauhaus minimal minimalist modern art circle line gradient " +
    "wallpaper heart",
  ],
];

/**
 * Additions to a scene: words, the motif, its position as shares of width and height, its size as a share of the
 * shorter side.
 */
const MOTIFS:
  readonly (readonly [words: string, motif: Motif, place: readonly [x: number, y: number, size: number]])[] = [
    ["lighthouse", lighthouse, [0.78, 0.63, 0.34]],
    ["house cabin cottage hut farm barn", house, [0.27, 0.76, 0.17]],
    ["boat ship sailboat yacht sail", sailboat, [0.36, 0.66, 0.24]],
    ["balloon", balloon, [0.62, 0.33, 0.23]],
    ["tree oak apple", tree, [0.72, 0.74, 0.42]],
    ["bird birds gull seagull crow eagle swallow", birds, [0.4, 0.26, 0.2]],
    ["rocket spaceship", rocket, [0.24, 0.4, 0.22]],
    ["fish whale dolphin", fish, [0.6, 0.66, 0.17]],
    ["cat kitten kitty", cat, [0.55, 0.76, 0.36]],
    ["heart love valentine", heart, [0.5, 0.42, 0.24]],
  ];

/** The layers of one image of a prompt, without text. */
export function compose(prompt: string, { width, height, index }: PixelSize & { index: number }): Layer[] {
  const list = readWords(prompt);
  const seed = hashText(`${prompt}\n${index}`);
  const random = randomOf(seed);
  const palette = choosePalette(list, random), unit = Math.min(width, height);
  const stage: Stage = { width, height, unit, random, seed: seed & 0xffffff, words: new Set(list), palette };
  return [
    ...chooseScene(stage)(stage),
    ...addMotifs(stage),
    ...weather(stage),
    brush(stage, 0.06, stage.seed + 500),
    vignette(stage, 0.42),
  ];
}

/** Words in lower case, also without a plural s. */
export function readWords(text: string): string[] {
  const found = text.slice(0, 4000).toLowerCase().match(/\p{L}+/gu) ?? [];
  return found.flatMap((word) => word.length > 3 && word.endsWith("s") ? [word, word.slice(0, -1)] : [word]);
}

function chooseScene({ words, random }: Stage): Scene {
  const any: Scene = pick<Scene>(random, [mountains, sea, city, abstract, meadow, desert, forest, space, abstract]);
  let best = any, most = 0;
  for (const [scene, list] of SCENES) {
    const hits = list.split(" ").filter((word) => words.has(word)).length;
    if (hits > most) [best, most] = [scene, hits];
  }
  return best;
}

function addMotifs(stage: Stage): Layer[] {
  const { width, height, unit } = stage;
  const shift = (stage.seed % 100 / 100 - 0.5) * 0.12;
  return MOTIFS.filter(([words]) => names(stage, ...words.split(" "))).slice(0, 4).flatMap(
    ([, motif, [x, y, size]]) => motif(stage, [width * (x + shift), height * y], unit * size),
  );
}

function weather(stage: Stage): Layer[] {
  const { width, height, unit, random, palette } = stage;
  const layers: Layer[] = [];
  if (names(stage, "rain", "rainy", "storm", "stormy")) layers.push(...rain(random, stage));
  if (names(stage, "snow", "snowy", "winter", "christmas")) {
    for (let i = 0; i < 420; i++) {
      const near = random() ** 4, radius = unit * (0.0014 + 0.008 * near);
      const flake = { radius, color: [1, 1, 1], alpha: 0.85 - 0.4 * near, soft: radius * (0.6 + near) } as const;
      layers.push(disc([random() * width, random() * height], flake));
    }
  }
  if (names(stage, "fog", "foggy", "mist", "misty")) {
    layers.push((band) =>
      eachPixel(band, (x, y, at) => {
        const thick = fractal(x / unit * 1.6, y / unit * 4, { seed: stage.seed + 9, octaves: 3 });
        lay(band.data, at, palette.sky[2], 0.25 + 0.35 * thick);
      })
    );
  }
  return layers;
}

function rain(random: Random, { width, height, unit }: Stage): Layer[] {
  return Array.from({ length: 260 }, () => {
    const x = random() * width * 1.2, y = random() * height, length = unit * (0.03 + 0.05 * random());
    return fill(stroke([[x, y], [x - length * 0.22, y + length]], Math.max(0.8, unit * 0.0016)), [0.92, 0.95, 1], 0.32);
  });
}
