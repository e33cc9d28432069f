/**
 * The embedded model `embed`: vectors without a network. The features of a text are its words, pairs of words and the
 * character n-grams of words; each is hashed to one dimension and a sign ("the hashing trick", Weinberger et al. 2009,
 * https://arxiv.org/abs/0902.2206). Texts that share features have similar vectors. It knows no synonyms.
 */
import type { EmbeddingInput } from "../../retrieval/types.ts";

/** Weights of features: words, words of up to three letters, pairs of words, n-grams of characters. */
const WORD = 1;
const SHORT_WORD = 0.4;
const PAIR = 0.5;
const GRAM = 0.35;

/** Lengths of character n-grams. */
const GRAMS = [3, 4, 5];

/** Longest word that is cut into n-grams, in characters. */
const MAX_CHARS = 64;

/** Words; in scripts without spaces, each character is a word. */
const WORDS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[[\p{L}\p{N}\p{M}]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]]+/gv;

/** Words between two pauses. */
const WORDS_PER_STEP = 512;

/** Makes the vector of an input, of unit length and in steps for `runSliced`. Equal inputs have equal vectors. */
export function* embedInput(input: EmbeddingInput, dimensions: number): Generator<void, Float64Array> {
  const vector = new Float64Array(dimensions);
  const add = (feature: string, weight: number) => {
    const hash = hashOf(feature);
    const at = (hash >>> 1) % dimensions;
    vector[at] = (vector[at] ?? 0) + ((hash & 1) === 0 ? weight : -weight);
  };
  let count = 0;
  let previous = "";
  for (const word of typeof input === "string" ? wordsOf(input) : input.map((id) => `#${id}`)) {
    const letters = [...word];
    add(`w ${word}`, letters.length <= 3 ? SHORT_WORD : WORD);
    if (count > 0) add(`p ${previous} ${word}`, PAIR);
    if (typeof input === "string" && letters.length > 1) addGrams(letters.slice(0, MAX_CHARS), add);
    previous = word;
    if (++count % WORDS_PER_STEP === 0) yield;
  }
  return toUnitLength(vector);
}

/** The words of a text; of a text without words, its characters. */
function* wordsOf(text: string): Generator<string> {
  const plain = text.normalize("NFKC").toLowerCase();
  let found = false;
  for (const [word] of plain.matchAll(WORDS)) {
    found = true;
    yield word;
  }
  if (!found) yield* plain;
}

function addGrams(letters: readonly string[], add: (feature: string, weight: number) => void): void {
  const marked = ["<", ...letters, ">"];
  for (const length of GRAMS) {
    for (let from = 0; from + length <= marked.length; from++) {
      add(`g ${marked.slice(from, from + length).join("")}`, GRAM);
    }
  }
}

/** FNV-1a over UTF-16 code units, mixed by the finalizer of MurmurHash3: both are in the public domain. */
function hashOf(feature: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < feature.length; at++) hash = Math.imul(hash ^ feature.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Features may cancel each other out; a vector of nothing points along the first dimension. */
function toUnitLength(vector: Float64Array): Float64Array {
  const length = Math.hypot(...vector);
  if (length === 0) vector[0] = 1;
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** Cosine of the angle between two vectors of unit length. */
export function cosineOf(first: Float64Array, second: Float64Array): number {
  return first.reduce((sum, value, at) => sum + value * (second[at] ?? 0), 0);
}
