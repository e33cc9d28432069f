/**
 * The embedded model `embed`: vectors without a network. The features of a text are its words, pairs of words and the
 * character n-grams of words; each is hashed to one dimension and a sign ("the hashing trick", Weinberger et al. 2009,
 * https://arxiv.org/abs/0902.2206). Texts that share features have similar vectors. It knows no synonyms.
 */
import type { EmbeddingInput } from "../../retrieval/types.ts";

/** Weights of features: words, words of up to three letters, pairs of words, n-grams of characters. */
const WORD_WEIGHT = 1;
const SHORT_WORD_WEIGHT = 0.4;
const PAIR_WEIGHT = 0.5;
const GRAM_WEIGHT = 0.35;

/** Lengths of character n-grams. */
const GRAM_LENGTHS = [3, 4, 5];

/** Most characters of a word that are split into n-grams. */
const MAX_GRAM_CHARS = 64;

/** Matches words. In scripts without spaces, each character is a word. */
const WORDS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[[\p{L}\p{N}\p{M}]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]]+/gv;

/** Words that are processed in one step. */
const WORDS_PER_STEP = 512;

/** Returns the vector of an input, of unit length, in steps for `runSliced`. Equal inputs have equal vectors. */
export function* embedInput(input: EmbeddingInput, dimensions: number): Generator<void, Float64Array> {
  const vector = new Float64Array(dimensions);
  const add = (feature: string, weight: number) => {
    const hash = hashOf(feature);
    const dimension = (hash >>> 1) % dimensions;
    vector[dimension] = (vector[dimension] ?? 0) + ((hash & 1) === 0 ? weight : -weight);
  };
  let count = 0;
  let previous = "";
  for (const word of typeof input === "string" ? wordsOf(input) : input.map((id) => `#${id}`)) {
    const letters = [...word];
    add(`w ${word}`, letters.length <= 3 ? SHORT_WORD_WEIGHT : WORD_WEIGHT);
    if (count > 0) add(`p ${previous} ${word}`, PAIR_WEIGHT);
    if (typeof input === "string" && letters.length > 1) addGrams(letters.slice(0, MAX_GRAM_CHARS), add);
    previous = word;
    if (++count % WORDS_PER_STEP === 0) yield;
  }
  return toUnitLength(vector);
}

/** Yields the words of a text, or its characters if it has no words. */
function* wordsOf(text: string): Generator<string> {
  const plain = text.normalize("NFKC").toLowerCase();
  let hasWords = false;
  for (const [word] of plain.matchAll(WORDS)) {
    hasWords = true;
    yield word;
  }
  if (!hasWords) yield* plain;
}

function addGrams(letters: readonly string[], add: (feature: string, weight: number) => void): void {
  const marked = ["<", ...letters, ">"];
  for (const length of GRAM_LENGTHS) {
    for (let from = 0; from + length <= marked.length; from++) {
      add(`g ${marked.slice(from, from + length).join("")}`, GRAM_WEIGHT);
    }
  }
}

/**
 * Returns the FNV-1a hash of the UTF-16 code units, mixed by MurmurHash3's finalizer. Both are in the public domain.
 */
function hashOf(feature: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < feature.length; at++) hash = Math.imul(hash ^ feature.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Scales a vector to unit length. If all features cancel each other out, it points along the first dimension. */
function toUnitLength(vector: Float64Array): Float64Array {
  const length = Math.hypot(...vector);
  if (length === 0) vector[0] = 1;
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** Returns the cosine of the angle between two vectors of unit length. */
export function cosineOf(first: Float64Array, second: Float64Array): number {
  return first.reduce((sum, value, at) => sum + value * (second[at] ?? 0), 0);
}
