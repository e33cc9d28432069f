/** Counts o200k_base tokens exactly, in linear time for any text. */
import { mergeLong, mergeShort, SHORT_PIECE } from "./bpe.ts";
import { runSliced, runToEnd } from "../scheduler.ts";
import { PieceSearch } from "./pieces.ts";
import { type RankTable, readRanks } from "./ranks.ts";
import { encodeUtf8 } from "../text.ts";

/** Longest text that is counted without a pause, in UTF-16 code units. It takes a few milliseconds at worst. */
export const COUNTED_AT_ONCE = 8192;
/** Bytes that are counted between two pauses, unless a single piece is longer. */
const BYTES_PER_STEP = 1024;

/**
 * Counts and splits text. Special tokens count as plain text: `<|endoftext|>` is seven ordinary tokens. A lone
 * surrogate counts as U+FFFD.
 */
export interface TokenCounter {
  /** Returns the number of tokens, counted synchronously. For long texts use `countLong`. */
  count(text: string): number;
  /**
   * Returns the number of tokens, counted in slices of at most about 10 ms.
   * @throws the signal's reason, before the next slice, once it is aborted
   */
  countLong(text: string, signal?: AbortSignal): Promise<number>;
  /** Returns the ids of the tokens. */
  encode(text: string): number[];
  /** Splits a text into its tokens. Tokens that share a character are joined into one piece. */
  split(text: string): string[];
}

let loading: Promise<TokenCounter> | undefined;

/** Loads the counter. The first call parses the vocabulary in slices and caches it. */
export function loadTokenCounter(): Promise<TokenCounter> {
  loading ??= load();
  return loading;
}

async function load(): Promise<TokenCounter> {
  // The vocabulary has two megabytes, so it is loaded at the first use.
  const { default: vocabulary } = await import("js-tiktoken/ranks/o200k_base");
  return counterOf(await runSliced(readRanks(vocabulary.bpe_ranks)));
}

function counterOf(table: RankTable): TokenCounter {
  const count = (text: string) => runToEnd(countSteps(table, text));
  return {
    count,
    countLong: async (text, signal) =>
      text.length <= COUNTED_AT_ONCE ? count(text) : await runSliced(countSteps(table, text), signal),
    encode(text) {
      const bytes = utf8(text);
      const ends: number[] = [];
      runToEnd(tokenize(table, bytes, ends));
      return ends.map((end, i) => table.rank(bytes, ends[i - 1] ?? 0, end));
    },
    split(text) {
      const bytes = utf8(text);
      const ends: number[] = [];
      runToEnd(tokenize(table, bytes, ends));
      return splitAtEnds(text, bytes, ends);
    },
  };
}

/** Returns the UTF-8 of a text. A lone surrogate becomes U+FFFD. */
function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Counts the tokens of a text, with pauses. The text is encoded as UTF-8 in the first step. */
function* countSteps(table: RankTable, text: string): Generator<void, number> {
  return yield* tokenize(table, text.length <= COUNTED_AT_ONCE ? utf8(text) : yield* encodeUtf8(text));
}

/** Counts the tokens of well-formed UTF-8, with pauses. Appends the ends of the tokens to `ends`. */
function* tokenize(table: RankTable, bytes: Uint8Array, ends?: number[]): Generator<void, number> {
  let count = 0;
  let pause = BYTES_PER_STEP;
  const search = new PieceSearch(bytes);
  for (let from = 0; from < bytes.length;) {
    let to = search.begin(from);
    for (; to < 0; to = search.resume()) yield;
    if (table.rank(bytes, from, to) >= 0) {
      count++;
      ends?.push(to);
    } else if (to - from <= SHORT_PIECE) {
      count += mergeShort(table, { bytes, from, to, ends });
    } else {
      count += yield* mergeLong(table, { bytes, from, to, ends });
    }
    from = to;
    if (from >= pause) {
      pause = from + BYTES_PER_STEP;
      yield;
    }
  }
  return count;
}

/** Splits a text at the ends of tokens, except within a character. */
function splitAtEnds(text: string, bytes: Uint8Array, ends: number[]): string[] {
  const pieces: string[] = [];
  let byte = 0;
  let unit = 0;
  for (const end of ends) {
    if (((bytes[end] ?? 0) & 0xc0) === 0x80) continue;
    const start = unit;
    for (; byte < end; byte++) {
      const value = bytes[byte] as number;
      // A character has one UTF-16 code unit, or two if its UTF-8 form has four bytes.
      if ((value & 0xc0) !== 0x80) unit += value >= 0xf0 ? 2 : 1;
    }
    pieces.push(text.slice(start, unit));
  }
  return pieces;
}
