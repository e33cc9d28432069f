/** From words to a picture: which scene, in which colours, with which things in it. */
import type { PixelSize } from "./pixels.ts";
import { fractal, hashText, pick, type Random, randomOf } from "./random.ts";
import { brush, disc, eachRow, vignette } from "./layers.ts";
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

/** Scenes and the words that call for them; the earliest scene in this list with the most of its words is taken. */
const SCENES: readonly { scene: Scene; words: string }[] = [
  {
    scene: city,
    words: "city skyline town street urban downtown skyscraper tower building metropolis stadt ville neon",
  },
  {
    scene: space,
    words:
      "space planet galaxy star saturn nebula universe cosmos cosmic astronaut alien orbit rocket spaceship weltall",
  },
  {
    scene: portrait,
    words: "portrait face man woman girl boy person people king queen lady head selfie princess human child",
  },
  {
    scene: sea,
    words:
      "sea ocean beach water coast harbor harbour wave boat ship sail sailboat island lighthouse fish whale bay meer mer shore",
  },
  { scene: desert, words: "desert dune sand cactus sahara camel pyramid canyon mars wüste" },
  { scene: forest, words: "forest wood woods jungle trail fairy mushroom fox wolf bear deer wald forêt" },
  {
    scene: mountains,
    words: "mountain landscape alp peak hill snow glacier valley lake river volcano hike berg montagne cabin winter",
  },
  {
    scene: meadow,
    words:
      "meadow garden flower field grass spring farm countryside village rose tulip house balloon cat dog sheep park tree barn",
  },
  {
    scene: abstract,
    words:
      "abstract pattern logo icon geometric shape cubist bauhaus minimal minimalist modern art circle line gradient wallpaper heart",
  },
];

/** What may be added to a scene: words, where it stands (shares of width and height), how large (share of the shorter side). */
const MOTIFS: readonly { words: string; motif: Motif; x: number; y: number; size: number }[] = [
  { words: "lighthouse", motif: lighthouse, x: 0.78, y: 0.63, size: 0.34 },
  { words: "house cabin cottage hut farm barn", motif: house, x: 0.27, y: 0.76, size: 0.17 },
  { words: "boat ship sailboat yacht sail", motif: sailboat, x: 0.36, y: 0.66, size: 0.24 },
  { words: "balloon", motif: balloon, x: 0.62, y: 0.33, size: 0.23 },
  { words: "tree oak apple", motif: tree, x: 0.72, y: 0.74, size: 0.42 },
  { words: "bird birds gull seagull crow eagle swallow", motif: birds, x: 0.4, y: 0.26, size: 0.2 },
  { words: "rocket spaceship", motif: rocket, x: 0.24, y: 0.4, size: 0.22 },
  { words: "fish whale dolphin", motif: fish, x: 0.6, y: 0.66, size: 0.17 },
  { words: "cat kitten kitty", motif: cat, x: 0.55, y: 0.76, size: 0.36 },
  { words: "heart love valentine", motif: heart, x: 0.5, y: 0.42, size: 0.24 },
];

/** The layers of one of a prompt's pictures, without any text. */
export function compose(prompt: string, { width, height, index }: PixelSize & { index: number }): Layer[] {
  const list = readWords(prompt);
  const seed = hashText(`${prompt}\n${index}`);
  const random = randomOf(seed);
  const stage: Stage = {
    width,
    height,
    unit: Math.min(width, height),
    random,
    seed: seed & 0xffffff,
    words: new Set(list),
    palette: choosePalette(list, random),
  };
  return [
    ...chooseScene(stage)(stage),
    ...addMotifs(stage),
    ...weather(stage),
    brush(stage, 0.06, stage.seed + 500),
    vignette(stage, 0.42),
  ];
}

/** Words in small letters; a plural s is left off as well. */
export function readWords(text: string): string[] {
  const found = text.slice(0, 4000).toLowerCase().match(/\p{L}+/gu) ?? [];
  return found.flatMap((word) => word.length > 3 && word.endsWith("s") ? [word, word.slice(0, -1)] : [word]);
}

function chooseScene({ words, random }: Stage): Scene {
  const any: Scene = pick<Scene>(random, [mountains, sea, city, abstract, meadow, desert, forest, space, abstract]);
  let best = any, most = 0;
  for (const { scene, words: list } of SCENES) {
    const hits = list.split(" ").filter((word) => words.has(word)).length;
    if (hits > most) [best, most] = [scene, hits];
  }
  return best;
}

function addMotifs(stage: Stage): Layer[] {
  const { width, height, unit } = stage;
  const shift = (stage.seed % 100 / 100 - 0.5) * 0.12;
  return MOTIFS.filter(({ words }) => names(stage, ...words.split(" "))).slice(0, 4).flatMap(
    ({ motif, x, y, size }) => motif(stage, [width * (x + shift), height * y], unit * size),
  );
}

function weather(stage: Stage): Layer[] {
  const { width, height, unit, random, palette } = stage;
  const layers: Layer[] = [];
  if (names(stage, "rain", "rainy", "storm", "stormy")) layers.push(...rain(random, stage));
  if (names(stage, "snow", "snowy", "winter", "christmas")) {
    for (let i = 0; i < 420; i++) {
      const near = random() ** 4;
      const radius = unit * (0.0014 + 0.008 * near);
      layers.push(
        disc([random() * width, random() * height], {
          radius,
          color: [1, 1, 1],
          alpha: 0.85 - 0.4 * near,
          soft: radius * (0.6 + near),
        }),
      );
    }
  }
  if (names(stage, "fog", "foggy", "mist", "misty")) {
    layers.push((band) => {
      eachRow(band, [0, height], (y, row) => {
        for (let x = 0; x < width; x++) {
          const thick = fractal(x / unit * 1.6, y / unit * 4, { seed: stage.seed + 9, octaves: 3 });
          lay(band.data, row + x * 3, palette.sky[2], 0.25 + 0.35 * thick);
        }
      });
    });
  }
  return layers;
}

function rain(random: Random, { width, height, unit }: Stage): Layer[] {
  return Array.from({ length: 260 }, () => {
    const x = random() * width * 1.2, y = random() * height, length = unit * (0.03 + 0.05 * random());
    return fill(stroke([[x, y], [x - length * 0.22, y + length]], Math.max(0.8, unit * 0.0016)), [0.92, 0.95, 1], 0.32);
  });
}
