/** Composes an image from the words of a prompt: a scene, its colours, motifs and weather. */
import type { PixelSize } from "./pixels.ts";
import { fractal, hashText, pick, randomOf } from "./random.ts";
import { brush, disc, vignette } from "./layers.ts";
import { balloon, birds, cat, fish, heart, house, lighthouse, rocket, sailboat, tree } from "./motifs.ts";
import { fill, stroke } from "./path.ts";
import { city } from "./scenes/city.ts";
import { desert, forest, meadow, mountains } from "./scenes/land.ts";
import { sea } from "./scenes/sea.ts";
import { abstract, portrait } from "./scenes/shapes.ts";
import { space } from "./scenes/space.ts";
import { choosePalette, names, type Scene, type Stage } from "./stage.ts";
import { eachPixel, lay, type Layer } from "./surface.ts";
import WORDS from "./words.json" with { type: "json" };

/**
 * Scenes. The one with the most of its words in the prompt is painted; on a tie, the one that `words.json` lists first.
 */
const SCENES = { city, space, portrait, sea, desert, forest, mountains, meadow, abstract };
/**
 * Objects added to a scene. In `words.json`, their place is in shares of width and height, their size in shares of the
 * shorter side.
 */
const MOTIFS = { lighthouse, house, sailboat, balloon, tree, birds, rocket, fish, cat, heart };

/**
 * Composes the layers of one image of a prompt, without its caption. `index` distinguishes several images of one
 * request.
 */
export function compose(prompt: string, { width, height, index }: PixelSize & { index: number }): Layer[] {
  const words = readWords(prompt);
  const seed = hashText(`${prompt}\n${index}`);
  const random = randomOf(seed);
  const palette = choosePalette(words, random), unit = Math.min(width, height);
  const stage: Stage = { width, height, unit, random, seed: seed & 0xffffff, words: new Set(words), palette };
  return [
    ...chooseScene(stage)(stage),
    ...addMotifs(stage),
    ...weather(stage),
    brush(stage, 0.06, stage.seed + 500),
    vignette(stage, 0.42),
  ];
}

/** Returns the words of a text in lower case; a word that ends with an s is followed by itself without it. */
export function readWords(text: string): string[] {
  const words = text.slice(0, 4000).toLowerCase().match(/\p{L}+/gu) ?? [];
  return words.flatMap((word) => word.length > 3 && word.endsWith("s") ? [word, word.slice(0, -1)] : [word]);
}

function entriesOf<Table extends object>(table: Table): [keyof Table, Table[keyof Table]][] {
  return Object.entries(table) as [keyof Table, Table[keyof Table]][];
}

function chooseScene({ words, random }: Stage): Scene {
  let best = pick<Scene>(random, [mountains, sea, city, abstract, meadow, desert, forest, space, abstract]), most = 0;
  for (const [name, sceneWords] of entriesOf(WORDS.scenes)) {
    const hits = sceneWords.split(" ").filter((word) => words.has(word)).length;
    if (hits > most) [best, most] = [SCENES[name], hits];
  }
  return best;
}

/** Draws up to four objects that the words name. */
function addMotifs(stage: Stage): Layer[] {
  const { width, height, unit } = stage;
  const shift = (stage.seed % 100 / 100 - 0.5) * 0.12;
  return entriesOf(WORDS.motifs).filter(([, { words }]) => names(stage, ...words.split(" "))).slice(0, 4)
    .flatMap(([name, { x, y, size }]) => MOTIFS[name](stage, [width * (x + shift), height * y], unit * size));
}

/** Draws rain, snow and fog if the words name them. */
function weather(stage: Stage): Layer[] {
  const { width, height, unit, random, palette } = stage;
  const layers: Layer[] = [];
  if (names(stage, "rain", "rainy", "storm", "stormy")) {
    for (let i = 0; i < 260; i++) {
      const x = random() * width * 1.2, y = random() * height, length = unit * (0.03 + 0.05 * random());
      const drop = stroke([[x, y], [x - length * 0.22, y + length]], Math.max(0.8, unit * 0.0016));
      layers.push(fill(drop, [0.92, 0.95, 1], 0.32));
    }
  }
  if (names(stage, "snow", "snowy", "winter", "christmas")) {
    for (let i = 0; i < 420; i++) {
      const near = random() ** 4, radius = unit * (0.0014 + 0.008 * near);
      const flake = { radius, color: [1, 1, 1], alpha: 0.85 - 0.4 * near, soft: radius * (0.6 + near) } as const;
      layers.push(disc([random() * width, random() * height], flake));
    }
  }
  if (names(stage, "fog", "foggy", "mist", "misty")) {
    layers.push((band) => {
      eachPixel(band, {}, (x, y, at) => {
        const density = fractal(x / unit * 1.6, y / unit * 4, { seed: stage.seed + 9, octaves: 3 });
        lay(band.data, at, palette.sky[2], 0.25 + 0.35 * density);
      });
    });
  }
  return layers;
}
