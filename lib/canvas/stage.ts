/** The input of scenes and motifs. */
import type { PixelSize } from "./pixels.ts";
import type { Palette } from "./palette.ts";
import type { Random } from "./random.ts";
import type { Layer } from "./surface.ts";

/** Size, randomness, colours and words of an image to compose. */
export interface Stage extends PixelSize {
  /** The shorter side in pixels. Lengths are shares of it, so that a scene looks the same at every size. */
  unit: number;
  random: Random;
  seed: number;
  palette: Palette;
  /** Words of the prompt in lower case; a word that ends with an s is also there without it. */
  words: ReadonlySet<string>;
}

/** Composes the layers of a scene. */
export type Scene = (stage: Stage) => Layer[];

/** Returns whether one of the words is in the prompt. */
export function names({ words }: Pick<Stage, "words">, ...list: readonly string[]): boolean {
  return list.some((word) => words.has(word));
}
